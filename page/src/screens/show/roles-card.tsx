/** The roles of the show, and the robots that play them. */

import { Icon } from "../../parts/icons";
import { showEditor } from "../../state/show-editor";
import { stage } from "../../state/stage";
import { TEXTS } from "../../texts";

const T = TEXTS.show;

export function RolesCard() {
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
            </li>
          );
        })}
      </ul>
    </section>
  );
}
