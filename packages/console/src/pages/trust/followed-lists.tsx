import { useState } from 'preact/hooks';
import { ask } from '../../api/call.ts';
import { Badge } from '../../parts/badge.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { Identity } from '../../shell/identities.ts';
import { certificateName } from './anchors.ts';

type HeldVersion = {
  readonly since: string;
  readonly reason: string;
  readonly signer: { readonly certificate: string; readonly fingerprint: string } | null;
};
type Row = {
  readonly id: string;
  readonly uri: string;
  readonly via: string | null;
  readonly sequenceNumber: number | null;
  readonly nextUpdate: string | null;
  readonly checkedAt: string | null;
  readonly held: HeldVersion | null;
};

export function FollowedLists({ identity }: { readonly identity: Identity }) {
  const [turn, setTurn] = useState(0);
  const columns: readonly Column<Row>[] = [
    {
      title: 'List',
      cell: ({ uri, via }) => (
        <>
          {uri} {via !== null && <span class="fine">by {via}</span>}
        </>
      ),
    },
    { title: 'Number', cell: ({ sequenceNumber }) => sequenceNumber ?? '–' },
    { title: 'Ends', cell: ({ nextUpdate }) => (nextUpdate === null ? '–' : <Time at={nextUpdate} />) },
    { title: 'Found', cell: ({ checkedAt }) => (checkedAt === null ? '–' : <Time at={checkedAt} />) },
    { title: 'State', cell: (row) => <State row={row} identity={identity} again={() => setTurn((before) => before + 1)} /> },
  ];
  return (
    <section aria-labelledby="lists">
      <h2 id="lists">Trust lists of others</h2>
      <Table<Row>
        identity={identity}
        caption="Lists that were fetched"
        path="/trust/lists"
        query={{ limit: 25 }}
        columns={columns}
        rowKey={({ id }) => id}
        again={turn}
        empty={
          <p>
            Lists that questions trust stand here once the service fetched them, which it does for the first check: a dry run of the
            question is one.
          </p>
        }
      />
    </section>
  );
}

type StateProps = { readonly row: Row; readonly identity: Identity; readonly again: () => void };

/** A release that came and does not count is held, and the good one before it goes on until it ends. */
function State({ row: { id, held }, identity, again }: StateProps) {
  if (held === null) return <Badge status="ok" />;
  const { reason, signer } = held;
  const confirm = async () => {
    const body = { fingerprint: signer?.fingerprint };
    await ask(identity, 'POST', `/trust/lists/${encodeURIComponent(id)}/confirm-signer`, { body });
    again();
    return 'The signer is trusted from now on.';
  };
  return (
    <>
      <Badge status="pending" /> {reason}{' '}
      {signer !== null && (
        <Confirm label="Confirm the signer" title="Who signs this list from now on" act={confirm} isGrave>
          <p>
            It came with {certificateName(signer.certificate)}, whose fingerprint is <code>{signer.fingerprint}</code>. Ask the operator of
            the list by another way whether that is right: whoever signs it says whom the questions trust.
          </p>
        </Confirm>
      )}
    </>
  );
}
