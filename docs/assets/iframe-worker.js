// Search without a server. A page that was opened as a file may not start a worker, so the script of
// the search runs in a hidden frame instead. The name of this file keeps the theme's plugin from
// loading a script of the same purpose from the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.inside = new Promise((resolve) => {
        const load = () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) =>
            this.dispatchEvent(new MessageEvent("message", { data }));
          const script = frame.contentDocument.createElement("script");
          script.src = url;
          script.addEventListener("load", () => resolve(inside));
          frame.contentDocument.body.append(script);
        };
        frame.addEventListener("load", load, { once: true });
      });
      document.body.append(frame);
    }

    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
