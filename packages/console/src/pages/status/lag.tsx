import { at } from '../../parts/json-paths.ts';
import { clockOf } from '../../parts/time.tsx';
import type { StatusMatch } from './find-session.tsx';
import type { ListRow } from './list-row.ts';
import { nameOfStatus, type ReadList, statusAt } from './token.ts';

type Props = { readonly list: ReadList; readonly of: ListRow; readonly onRecord: readonly StatusMatch[] };

export function Lag({ list, of, onRecord }: Props) {
  const [made, ends] = ['iat', 'exp'].map((name) => momentOf(at(list.claims, name)));
  if (made === undefined || ends === undefined) return null;
  const behind = onRecord.filter(({ index, status }) => statusAt(list, index) !== status);
  return (
    <>
      {behind.map(({ index, status }) => (
        <p key={index} class="remark warned">
          Entry {index} is {nameOfStatus(status)} in the database. The published list was signed at {clockOf(made)} and does not show this
          yet. It is signed again by {clockOf(ends)}. Until then other verifiers may use it; verifiers of this service use the database.
        </p>
      ))}
      <p class="fine">
        Signed at {clockOf(made)}; verifiers may keep this copy until {clockOf(ends)}.{' '}
        {of.immediateUpdate
          ? 'A change is published at once, for who fetches the list then.'
          : 'A change is published with the next copy; with immediateUpdate, which new lists can have, at once.'}
      </p>
    </>
  );
}

function momentOf(seconds: unknown): Date | undefined {
  return typeof seconds === 'number' ? new Date(seconds * 1000) : undefined;
}
