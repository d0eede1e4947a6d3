/** Whether there is room to edit a show. */

import { computed, signal } from "@preact/signals";
import { showEditor } from "../../state/show-editor";

const small = matchMedia("(max-width: 640px), (max-height: 500px) and (max-width: 950px)");

export const phone = signal(small.matches);
small.addEventListener("change", (event) => (phone.value = event.matches));

/** Whether the lanes are shown: there is a show, and room to edit it. */
export const hasLanes = computed(() => showEditor.draft.value !== null && !phone.value);
