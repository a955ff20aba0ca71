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
          On record, entry {index} is {nameOfStatus(status)}. The list that verifiers have is of {clockOf(made)} and does not say so yet: it
          is made anew by {clockOf(ends)}. Until then verifiers elsewhere may go by it; those of this service do not.
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
