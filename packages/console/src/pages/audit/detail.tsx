import type { ComponentChildren } from 'preact';
import { ValueTree } from '../../parts/value-tree.tsx';
import { type Change, type Entry, groupsOf } from './entry.ts';

const TITLES = { changed: 'Changed', set: 'Set', unset: 'Taken away' } as const;

/** An entry in full: its members by what became of them, then what names it elsewhere. */
export function Detail({ entry }: { readonly entry: Entry }) {
  const { changes, sequence } = entry;
  const groups = groupsOf(changes);
  return (
    <details class="entry">
      <summary>{titleOf(changes)}</summary>
      {(['changed', 'set', 'unset'] as const).map(
        (name) => groups[name].length > 0 && <Group key={name} title={TITLES[name]} changes={groups[name]} />,
      )}
      {groups.untold.length > 0 && (
        <Part title="Values not in the log">
          <p class="names">
            {groups.untold.map(({ member }) => (
              <code key={member}>{member}</code>
            ))}
          </p>
        </Part>
      )}
      <Part title={`Entry ${sequence}`}>
        <Names entry={entry} />
      </Part>
    </details>
  );
}

function titleOf(changes: readonly Change[]): string {
  const [first, second, ...rest] = changes.map(({ member }) => member);
  if (first === undefined) return 'entry';
  if (second === undefined) return first;
  return rest.length === 0 ? `${first}, ${second}` : `${first}, ${second} and ${rest.length} more`;
}

function Part({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <p class="part">{title}</p>
      {children}
    </section>
  );
}

function Group({ title, changes }: { readonly title: string; readonly changes: readonly Change[] }) {
  return (
    <Part title={title}>
      <dl>
        {changes.map(({ member, before, after }) => (
          <div key={member}>
            <dt>{member}</dt>
            {before !== undefined && (
              <dd>
                <span class="fine">was</span> <ValueTree value={before} />
              </dd>
            )}
            {after !== undefined && (
              <dd>
                <span class="fine">is</span> <ValueTree value={after} />
              </dd>
            )}
          </div>
        ))}
      </dl>
    </Part>
  );
}

function Names({ entry: { at, requestId, of, hash } }: { readonly entry: Entry }) {
  return (
    <dl>
      <div>
        <dt>At</dt>
        <dd>{new Date(at).toLocaleString()}</dd>
      </div>
      {of !== undefined && (
        <div>
          <dt>Repeats</dt>
          <dd>
            entry {of.sequence} of the log of <code>{of.tenantId}</code>
          </dd>
        </div>
      )}
      {requestId !== undefined && (
        <div>
          <dt>Request</dt>
          <dd>
            <code>{requestId}</code>
          </dd>
        </div>
      )}
      <div>
        <dt>Hash</dt>
        <dd>
          <code>{hash}</code>
        </dd>
      </div>
    </dl>
  );
}
