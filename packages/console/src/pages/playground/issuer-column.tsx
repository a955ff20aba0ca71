import { Confirm } from '../../parts/confirm.tsx';
import { clockOf } from '../../parts/time.tsx';
import { useBusy } from '../../parts/use-busy.tsx';
import type { Play, PlayStep } from './play.ts';
import { TurnView } from './turn-view.tsx';

const NAMES: Readonly<Record<string, string>> = { diploma: 'Diploma', licence: 'Driving licence' };

/** The university: offers cards, and takes them back. */
export function IssuerColumn({ play }: { readonly play: Play }) {
  const { issuer } = play.demonstration;
  const [isBusy, run, problem] = useBusy();
  const titleOf = (turn: PlayStep) => play.titled(play.offers.value, turn, `Offer: ${NAMES[turn.about]}`);
  return (
    <section aria-labelledby="issuer">
      <h2 id="issuer">University</h2>
      <p class="fine">Issues. {issuer.tenantId}</p>
      <div class="actions">
        {Object.entries(NAMES).map(([id, name]) => (
          <button key={id} type="button" aria-busy={isBusy} disabled={isBusy} onClick={() => run(() => play.offer(id))}>
            Offer a {name.toLowerCase()}
          </button>
        ))}
      </div>
      {problem}
      {play.offers.value.map((turn) => (
        <TurnView key={turn.id} turn={turn} play={play} who={issuer} title={titleOf(turn)}>
          {turn.status === 'completed' && !turn.isRevoked && (
            <Confirm
              label="Revoke"
              about={titleOf(turn)}
              title="Revoke this credential?"
              isGrave
              act={async () => {
                await play.revoke(turn);
                return 'Revoked. The employer refuses it from now on.';
              }}
            >
              <p>It stays in the phone and is good for nothing. That cannot be undone.</p>
            </Confirm>
          )}
          {turn.isRevoked && (
            <p>
              The employer, a tenant of the same service, refuses it from now on.{' '}
              {turn.believedUntil !== undefined &&
                `Verifiers elsewhere may have a copy of the status list and accept it until ${clockOf(turn.believedUntil)}.`}
            </p>
          )}
        </TurnView>
      ))}
    </section>
  );
}
