/** What speaks for and against moving, with what to do about it. */

import { sentence } from "../format";
import type { Finding } from "../types";
import { remedy, message } from "../wording";
import { Icon } from "./icons";

export function Findings({ findings, fine, limit = 8 }: { findings: Finding[]; fine: string; limit?: number }) {
  if (!findings.length)
    return (
      <p class="fine">
        <Icon name="check" />
        <span>{fine}</span>
      </p>
    );
  return (
    <ul class="findings">
      {findings.slice(0, limit).map((finding) => (
        <li key={finding.message} class={`finding ${finding.severity}`} data-severity={finding.severity}>
          <Icon name={finding.severity === "note" ? "info" : "warn"} />
          <div>
            <p>{sentence(message(finding))}</p>
            {finding.remedy && <p class="remedy">{sentence(remedy(finding))}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}
