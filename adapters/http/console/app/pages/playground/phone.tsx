import { useState } from 'preact/hooks';
import {
  canMisbehave,
  MISBEHAVIOURS,
  type Misbehaviour,
  type ReadOffer,
  type ReadRequest,
} from '../../../../../../tools/wallet/core/index.ts';
import { CardView } from './card-view.tsx';
import type { Play } from './play.ts';
import { Wire } from './wire.tsx';

/** The phone: a wallet of other people’s code, whose keys live in this window. */
export function Phone({ play }: { readonly play: Play }) {
  const incoming = play.incoming.value;
  const note = play.note.value;
  return (
    <section id="phone" aria-labelledby="phone-title">
      <h2 id="phone-title">Phone</h2>
      <p class="fine">Holds. Its keys are in this window and end with it.</p>
      <div class="phone">
        <div role="status">{note !== undefined && <p class={`outcome ${note.tone}`}>{note.text}</p>}</div>
        {incoming?.kind === 'offer' && <Consent play={play} offer={incoming.offer} />}
        {incoming?.kind === 'request' && <Asked key={incoming.turn} play={play} request={incoming.request} />}
        {incoming === undefined && <Cards play={play} />}
      </div>
      <Wire play={play} />
    </section>
  );
}

function Cards({ play }: { readonly play: Play }) {
  if (play.cards.value.length === 0)
    return <p class="empty">No cards yet. Have the university offer one, and open the offer here.</p>;
  return (
    <ul class="cards" aria-label="Cards">
      {play.cards.value.map((card) => (
        <li key={card.id}>
          <CardView card={card} />
        </li>
      ))}
    </ul>
  );
}

function Consent({ play, offer }: { readonly play: Play; readonly offer: ReadOffer }) {
  const [isBusy, setBusy] = useState(false);
  return (
    <div class="consent">
      <h3>Add to this phone?</h3>
      <p>
        <strong>{offer.issuer.name}</strong> offers:
      </p>
      {offer.credentials.map(({ configurationId, look, labels }) => (
        <div key={configurationId}>
          <p class="plate" style={{ background: look.backgroundColor, color: look.textColor }}>
            {look.name}
          </p>
          <p class="fine">It says: {labels.map(({ name }) => name).join(', ')}</p>
        </div>
      ))}
      <div class="actions">
        <button
          type="button"
          aria-busy={isBusy}
          disabled={isBusy}
          onClick={() => {
            setBusy(true);
            void play.accept(offer);
          }}
        >
          Add
        </button>
        <button type="button" class="quiet" onClick={() => play.dismiss()}>
          Not now
        </button>
      </div>
    </div>
  );
}

function Asked({ play, request }: { readonly play: Play; readonly request: ReadRequest }) {
  const [misbehave, setMisbehave] = useState<Misbehaviour | ''>('');
  const [isBusy, setBusy] = useState(false);
  const { verifier, queries } = request;
  const formats = queries.flatMap(({ matches }) =>
    matches.slice(0, 1).map(({ credential }) => credential.format),
  );
  const ways = (Object.keys(MISBEHAVIOURS) as Misbehaviour[]).filter(
    (way) => way !== 'decline' && formats.every((format) => canMisbehave(way, format)),
  );
  return (
    <div class="consent">
      <h3>{verifier.name ?? commonName(verifier.signer?.subject) ?? 'Somebody'} asks</h3>
      <p class="fine">
        {verifier.signer === undefined
          ? 'Nobody signed this request.'
          : `Signed by ${verifier.signer.subject}`}
      </p>
      {queries.map(({ id, matches, types }) => {
        const [match] = matches;
        if (match === undefined)
          return (
            <p key={id} class="outcome bad">
              This phone has no card that answers: {types.join(', ')}
            </p>
          );
        return (
          <div key={id}>
            <p
              class="plate"
              style={{
                background: match.credential.look.backgroundColor,
                color: match.credential.look.textColor,
              }}
            >
              {match.credential.look.name}
            </p>
            <p>These leave the phone, and nothing else of the card:</p>
            <dl>
              {match.claims.map(({ path, value }) => (
                <div key={path.join('.')}>
                  <dt>{String(path.at(-1))}</dt>
                  <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
                </div>
              ))}
            </dl>
          </div>
        );
      })}
      {request.canBeAnswered && (
        <label>
          Misbehave
          <select
            value={misbehave}
            onChange={(event) => setMisbehave(event.currentTarget.value as Misbehaviour | '')}
          >
            <option value="">no: be honest</option>
            {ways.map((way) => (
              <option key={way} value={way}>
                {MISBEHAVIOURS[way].title}
              </option>
            ))}
          </select>
          {misbehave !== '' && <small>{MISBEHAVIOURS[misbehave].about}</small>}
        </label>
      )}
      <div class="actions">
        {request.canBeAnswered && (
          <button
            type="button"
            aria-busy={isBusy}
            disabled={isBusy}
            class={misbehave === '' ? '' : 'grave'}
            onClick={() => {
              setBusy(true);
              void play.present(request, misbehave === '' ? undefined : misbehave);
            }}
          >
            {misbehave === '' ? 'Show' : 'Cheat'}
          </button>
        )}
        <button type="button" class="quiet" disabled={isBusy} onClick={() => void play.decline(request)}>
          Decline
        </button>
      </div>
    </div>
  );
}

/** What a certificate calls its owner. */
function commonName(subject = ''): string | undefined {
  return /(?:^|,\s*)CN=((?:[^,\\]|\\.)+)/.exec(subject)?.[1];
}
