import { useBusy } from '../../parts/use-busy.tsx';
import type { Play, PlayStep } from './play.ts';
import { reasonInWords } from './reasons.ts';
import { TurnView } from './turn-view.tsx';

const NAMES: Readonly<Record<string, string>> = { degree: 'Which degree?', 'may-drive': 'May they drive?' };

/** The employer: asks, and learns no more than it asked for. */
export function VerifierColumn({ play }: { readonly play: Play }) {
  const { verifier } = play.demonstration;
  const [isBusy, run, problem] = useBusy();
  return (
    <section aria-labelledby="verifier">
      <h2 id="verifier">Employer</h2>
      <p class="fine">Verifies. {verifier.tenantId}</p>
      <div class="actions">
        {Object.entries(NAMES).map(([id, name]) => (
          <button key={id} type="button" aria-busy={isBusy} disabled={isBusy} onClick={() => run(() => play.request(id))}>
            Ask: {name.toLowerCase()}
          </button>
        ))}
      </div>
      {problem}
      {play.requests.value.map((turn) => (
        <TurnView
          key={turn.id}
          turn={turn}
          play={play}
          who={verifier}
          title={play.titled(play.requests.value, turn, NAMES[turn.about] ?? turn.about)}
        >
          <div aria-live="polite">
            <Outcome turn={turn} />
          </div>
        </TurnView>
      ))}
    </section>
  );
}

function Outcome({ turn: { status, reason, learned, misbehaviour } }: { readonly turn: PlayStep }) {
  if (status === 'completed')
    return (
      <div class="outcome good">
        <p>
          <strong>Verified.</strong> The employer learned:
        </p>
        <dl>
          {leavesOf(learned ?? {}).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        <p class="fine">
          These values were shown to you here as <em>Show values</em> shows them: the session has it on record.
        </p>
        {misbehaviour === 'replay' && <p>The second, identical answer was refused: a request is answered once.</p>}
      </div>
    );
  if (status !== 'failed') return null;
  return (
    <div class="outcome bad">
      <p>
        <strong>{reason?.startsWith('access_denied') ? 'Declined.' : 'Refused.'}</strong> {reasonInWords(reason)}
      </p>
      {reason !== undefined && !reason.includes('•••') && <code>{reason}</code>}
    </div>
  );
}

function leavesOf(values: Readonly<Record<string, unknown>>): [string, string][] {
  return Object.entries(values).flatMap(([name, value]): [string, string][] =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? leavesOf(value as Record<string, unknown>)
      : [[name, typeof value === 'string' ? value : JSON.stringify(value)]],
  );
}
