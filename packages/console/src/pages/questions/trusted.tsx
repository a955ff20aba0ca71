import { Field, Remarks, toldOf } from '../../parts/field.tsx';
import { at, listAt } from '../../parts/json-paths.ts';
import type { Draft } from '../../parts/use-draft.ts';
import type { Identity } from '../../shell/identities.ts';
import { AddAuthorities } from '../trust/add-authorities.tsx';
import { type Anchor, nameOf, newAmong } from '../trust/anchors.ts';
import { ListOptions } from './list-options.tsx';

type Props = { readonly draft: Draft; readonly identity: Identity; readonly mayWrite: boolean };

export function Trusted({ draft, identity, mayWrite }: Props) {
  const anchors = listAt(draft.value, 'trustAnchors');
  const isOwn = anchors.some((anchor) => at(anchor, 'ownAuthorities') === true);
  const write = (next: readonly unknown[]) => draft.change(['trustAnchors'], next.length > 0 ? next : undefined);
  const add = (added: readonly Anchor[]) => write([...anchors, ...newAmong(anchors, added)]);
  return (
    <section class="card" aria-labelledby="trusted">
      <h2 id="trusted">Whom it trusts</h2>
      <label>
        <input
          type="checkbox"
          checked={isOwn}
          onChange={(event) =>
            write(
              event.currentTarget.checked
                ? [...anchors, { ownAuthorities: true }]
                : anchors.filter((anchor) => at(anchor, 'ownAuthorities') !== true),
            )
          }
        />
        All own key chains that issue
      </label>
      <ul class="plain-list">
        {anchors.map(
          (anchor, index) =>
            at(anchor, 'ownAuthorities') !== true && (
              <li key={`${index} ${nameOf(anchor)}`}>
                <OneTrusted draft={draft} index={index} remove={() => write(anchors.filter((_, place) => place !== index))} />
              </li>
            ),
        )}
      </ul>
      <Remarks told={draft.told.filter(({ path }) => path === 'trustAnchors')} />
      {mayWrite && <AddAuthorities verb="Trust" identity={identity} add={add} />}
    </section>
  );
}

type OneProps = { readonly draft: Draft; readonly index: number; readonly remove: () => void };

function OneTrusted({ draft, index, remove }: OneProps) {
  const path = ['trustAnchors', index];
  const anchor = at(draft.value, ...path);
  const name = nameOf(anchor);
  const told = toldOf(draft.told, path);
  return (
    <>
      {name}{' '}
      <button type="button" class="quiet small" aria-label={`Remove ${name}`} onClick={remove}>
        Remove
      </button>
      <Remarks told={told} />
      {at(anchor, 'certificate') !== undefined && (
        <Field draft={{ ...draft, told: [] }} path={[...path, 'pin']} kind="checkbox" label="Only what this very certificate signs (pin)" />
      )}
      {at(anchor, 'trustList') !== undefined && <ListOptions draft={draft} path={path} />}
    </>
  );
}
