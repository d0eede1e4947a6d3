/** The roles of the show, and the robots that play them. */

import { useEffect, useState } from "preact/hooks";
import { api } from "../../api";
import { Icon } from "../../parts/icons";
import { showEditor } from "../../state/show-editor";
import { stage } from "../../state/stage";
import { TEXTS } from "../../texts";

const T = TEXTS.show;

const DEFAULT_BUILD = "g1-29";

function RoleFields({ name, builds }: { name: string; builds: readonly string[] }) {
  const role = showEditor.draft.value?.roles[name] ?? {};
  const build = role.build ?? DEFAULT_BUILD;
  return (
    <details class="more">
      <summary aria-label={T.roleDetails(name)}>{T.details}</summary>
      <div class="fields">
        <label class="field">
          <span>{T.titleLabel}</span>
          <input
            type="text"
            maxLength={200}
            value={role.title ?? ""}
            onChange={(event) => showEditor.changeRole(name, { title: event.currentTarget.value.trim() || null })}
          />
        </label>
        <label class="field">
          <span>{T.build}</span>
          <select
            value={build}
            onChange={(event) => {
              const chosen = event.currentTarget.value;
              showEditor.changeRole(name, { build: chosen === DEFAULT_BUILD ? null : chosen });
            }}
          >
            {[...new Set([build, DEFAULT_BUILD, ...builds])].map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>{T.onLoss}</span>
          <select
            value={role.on_loss ?? "stop"}
            data-testid="role-loss"
            onChange={(event) =>
              showEditor.changeRole(name, { on_loss: event.currentTarget.value === "drop" ? "drop" : null })
            }
          >
            <option value="stop">{T.roleLosses.stop}</option>
            <option value="drop">{T.roleLosses.drop}</option>
          </select>
        </label>
      </div>
    </details>
  );
}

export function RolesCard() {
  const [builds, setBuilds] = useState<readonly string[]>([]);
  useEffect(() => {
    api.robots().then(
      ({ simulated }) => setBuilds(simulated.map(({ build }) => build)),
      () => undefined, // the default build can be chosen
    );
  }, []);
  const robots = stage.current.value?.robots.map(({ name }) => name) ?? [];
  return (
    <section class="card" aria-labelledby="roles-title" data-testid="roles">
      <div class="row spread wrap">
        <h2 id="roles-title">{T.roles}</h2>
        <button type="button" class="button" onClick={showEditor.addRole} data-testid="add-role">
          {T.addRole}
        </button>
      </div>
      <ul class="list">
        {showEditor.roles.value.map((role) => {
          const own = showEditor.cast.value[role] ?? "";
          const names = own && !robots.includes(own) ? [own, ...robots] : robots;
          return (
            <li key={role} class="item">
              <div class="item-main">
                <span class="item-words item-name">{role}</span>
                {names.length > 0 && (
                  <select
                    value={own}
                    aria-label={T.playedBy(role)}
                    data-testid="cast"
                    data-name={role}
                    onChange={(event) => showEditor.castRole(role, event.currentTarget.value)}
                  >
                    <option value="">{T.nobody}</option>
                    {names.map((name) => (
                      <option key={name} value={name}>
                        {name}
                      </option>
                    ))}
                  </select>
                )}
                <button
                  type="button"
                  class="button quiet"
                  aria-label={T.renameRole(role)}
                  onClick={() => showEditor.askToRenameRole(role)}
                >
                  {T.rename}
                </button>
                <button
                  type="button"
                  class="icon-button small"
                  aria-label={T.removeRole(role)}
                  title={T.removeRole(role)}
                  disabled={showEditor.roles.value.length < 2}
                  onClick={() => showEditor.removeRole(role)}
                >
                  <Icon name="close" />
                </button>
              </div>
              <RoleFields name={role} builds={builds} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}
