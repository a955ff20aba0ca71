import { Remarks, toldOf } from '../../parts/field.tsx';
import { listAt } from '../../parts/json-paths.ts';
import type { Draft } from '../../parts/use-draft.ts';
import { pathOf, titleOf } from '../credentials/claims.ts';
import { askedOf, type Kind, kindOf, queryFor } from './question.ts';
import { TrustIssuer } from './trust-issuer.tsx';

type Props = {
  readonly draft: Draft;
  readonly kinds: readonly Kind[];
  /** Tenants whose credentials could not be read. */
  readonly unread: readonly string[];
};

export function AskedCredentials({ draft, kinds, unread }: Props) {
  const asked = askedOf(draft.value);
  const place = ['dcql_query', 'credentials'];
  const add = (event: SubmitEvent) => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget as HTMLFormElement).get('kind'));
    const kind = kinds.find((candidate) => candidate.key === key);
    if (kind === undefined) return;
    const taken = new Set(asked.map(({ id }) => id));
    const base = key.replace(/^of [^/]*\/|^\w+ /, '').replaceAll(/[^A-Za-z0-9_-]/g, '-');
    const id = taken.has(base) ? `${base}-${asked.length + 1}` : base;
    draft.change([...place, asked.length], queryFor(kind, id));
  };
  const groups = Map.groupBy(kinds, whose);
  return (
    <section class="card" aria-labelledby="asked">
      <h2 id="asked">What it asks for</h2>
      {asked.map((credential, index) => (
        <OneAsked
          key={`${index} ${credential.types.join()}`}
          draft={draft}
          index={index}
          kind={kindOf(credential, kinds)}
          title={credential.id}
        />
      ))}
      <form class="adders" onSubmit={add}>
        <label>
          A credential
          <select name="kind">
            {[...groups].map(([label, members]) => (
              <optgroup key={label} label={label}>
                {members.map(({ key, title }) => (
                  <option key={key} value={key}>
                    {title}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
        </label>
        <button type="submit">Ask for it</button>
      </form>
      {unread.length > 0 && <p class="fine">What {unread.join(', ')} issues could not be read.</p>}
      <p class="fine">
        What another tenant of this service issues stands here once you are logged in as a client of it, too, with the role{' '}
        <code>issuance:manage</code> (<em>Add</em> at the top).
      </p>
    </section>
  );
}

function whose({ isOwn, issuer }: Kind): string {
  if (isOwn) return 'Issued here';
  return issuer === undefined ? 'Known kinds' : `Issued by ${issuer}`;
}

type OneProps = { readonly draft: Draft; readonly index: number; readonly kind: Kind | undefined; readonly title: string };

function OneAsked({ draft, index, kind, title }: OneProps) {
  const place = ['dcql_query', 'credentials', index];
  const chosen = listAt(draft.value, ...place, 'claims');
  const paths = chosen.map((claim) => pathOf(claim).join('\n'));
  const offered = kind?.claims.filter(({ path }) => !path.includes('*')) ?? [];
  const others = chosen.map(pathOf).filter((path) => !offered.some((claim) => claim.path.join('\n') === path.join('\n')));
  const toggle = (path: readonly string[], isOn: boolean) => {
    const at = paths.indexOf(path.join('\n'));
    const next = isOn ? [...chosen, { path }] : chosen.filter((_, position) => position !== at);
    draft.change([...place, 'claims'], next);
  };
  const all = [...offered, ...others.map((path) => ({ path, name: titleOf(path.at(-1) ?? '') }))];
  return (
    <fieldset>
      <legend>
        <strong>{kind?.title ?? title}</strong>
      </legend>
      <div class="pair">
        {all.map(({ path, name }) => (
          <label key={path.join('\n')}>
            <input
              type="checkbox"
              checked={paths.includes(path.join('\n'))}
              onChange={(event) => toggle(path, event.currentTarget.checked)}
            />
            {name}
          </label>
        ))}
      </div>
      <Remarks told={toldOf(draft.told, place)} />
      {kind !== undefined && <TrustIssuer draft={draft} kind={kind} />}
      <button
        type="button"
        class="quiet small"
        onClick={() => draft.change(place, undefined)}
        aria-label={`Do not ask for it: ${kind?.title ?? title}`}
      >
        Do not ask for it
      </button>
    </fieldset>
  );
}
