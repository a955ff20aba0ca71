import { useContext } from 'preact/hooks';
import { Time } from '../../parts/time.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { Identity } from '../../shell/identities.ts';
import { Openable } from '../../shell/openable.ts';
import { linkTo } from '../../shell/place.ts';

type Entry = {
  readonly sequence: number;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly changes: readonly { readonly member: string; readonly after?: unknown }[];
};
type Props = { readonly identity: Identity; readonly id: string; readonly since: unknown };

const MOST = 20;

export function OnRecord({ identity, id, since }: Props) {
  const mayRead = useContext(Openable).includes('audit');
  const query = new URLSearchParams({ kind: 'session', target: id, limit: String(MOST) });
  const { value = [] } = useAsked<readonly Entry[]>(identity, mayRead ? `/audit-log?${query}` : undefined, since);
  if (value.length === 0) return null;
  return (
    <section class="card" aria-labelledby="on-record">
      <h2 id="on-record">On record</h2>
      <ul>
        {value.map(({ sequence, at, actor, action, changes }) => (
          <li key={sequence}>
            {action} by <code>{actor}</code> <Time at={at} />
            <Reason changes={changes} />
          </li>
        ))}
      </ul>
      <p class="fine">
        <a href={linkTo('audit', '', { kind: 'session', target: id })}>In the audit log</a>
      </p>
    </section>
  );
}

function Reason({ changes }: Pick<Entry, 'changes'>) {
  const reason = changes.find(({ member }) => member === 'reason')?.after;
  return typeof reason === 'string' ? <>: “{reason}”</> : null;
}
