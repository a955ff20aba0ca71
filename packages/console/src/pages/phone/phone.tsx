import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { canMisbehave, MISBEHAVIOURS, type Misbehaviour, type ReadOffer, type ReadRequest } from '../../../../wallet/src/core/index.ts';
import { CardView, nameOf } from './card-view.tsx';
import { handset } from './handset.ts';
import { Wire } from './wire.tsx';

/** The phone: a wallet of other people’s code, whose keys live in this window. */
export function Phone() {
  const incoming = handset.incoming.value;
  const note = handset.note.value;
  const told = useRef<HTMLParagraphElement>(null);
  const asked = useRef(incoming);
  useEffect(() => {
    // What was asked is answered, and its buttons are gone: what came of it is read next.
    if (asked.current !== undefined && incoming === undefined) told.current?.focus();
    asked.current = incoming;
  }, [incoming]);
  return (
    <section id="phone" aria-labelledby="phone-title">
      <h2 id="phone-title">Phone</h2>
      <p class="fine">Holds. Its keys are in this window and end with it.</p>
      <div class="phone">
        <div role="status">
          {note !== undefined && (
            <p ref={told} tabIndex={-1} class={`outcome ${note.tone}`}>
              {note.text}
            </p>
          )}
        </div>
        {note?.detail !== undefined && (
          <details>
            <summary>Text of the wallet</summary>
            <p class="fine">{note.detail}</p>
          </details>
        )}
        {incoming?.kind === 'offer' && <Consent offer={incoming.offer} />}
        {incoming?.kind === 'request' && <Asked key={String(incoming.request.payload['nonce'])} request={incoming.request} />}
        {incoming === undefined && <Cards />}
        {incoming === undefined && handset.hasPromises && (
          <button type="button" onClick={() => void handset.fetchPromised()}>
            Fetch what was promised
          </button>
        )}
      </div>
      <Wire />
    </section>
  );
}

function Cards() {
  if (handset.cards.value.length === 0) return <p class="empty">No cards yet. Open an offer here.</p>;
  return (
    <ul class="cards" aria-label="Cards">
      {handset.cards.value.map((card) => (
        <li key={card.id}>
          <CardView card={card} />
        </li>
      ))}
    </ul>
  );
}

function Consent({ offer }: { readonly offer: ReadOffer }) {
  const [isBusy, setBusy] = useState(false);
  const [code, setCode] = useState('');
  return (
    <div class="consent">
      <Prompt>Add to this phone?</Prompt>
      <p>
        <strong>{offer.issuer.name}</strong> offers:
      </p>
      {offer.credentials.map(({ configurationId, look, labels }) => (
        <div key={configurationId}>
          <p class="plate" style={{ backgroundColor: look.backgroundColor, color: look.textColor }}>
            {look.name}
          </p>
          <p class="fine">It says: {labels.map(({ name }) => name).join(', ')}</p>
        </div>
      ))}
      {offer.txCode !== undefined && (
        <label>
          {offer.txCode.description ?? 'Transaction code, which the issuer told you by another way'}
          <input
            value={code}
            inputMode={offer.txCode.inputMode}
            autocomplete="one-time-code"
            onInput={(event) => setCode(event.currentTarget.value)}
          />
        </label>
      )}
      {offer.grant === 'authorization_code' && (
        <p class="fine">The issuer wants you on a page of its own first, which this phone cannot open.</p>
      )}
      <div class="actions">
        <button
          type="button"
          aria-busy={isBusy}
          disabled={isBusy || offer.grant === 'authorization_code'}
          onClick={() => {
            setBusy(true);
            void handset.accept(offer, offer.txCode === undefined ? undefined : code.trim());
          }}
        >
          Add
        </button>
        <button type="button" class="quiet" onClick={() => handset.dismiss()}>
          Not now
        </button>
      </div>
    </div>
  );
}

function Asked({ request }: { readonly request: ReadRequest }) {
  const [misbehave, setMisbehave] = useState<Misbehaviour | ''>('');
  const [isBusy, setBusy] = useState(false);
  const { verifier, queries } = request;
  const formats = queries.flatMap(({ matches }) => matches.slice(0, 1).map(({ credential }) => credential.format));
  const ways = (Object.keys(MISBEHAVIOURS) as Misbehaviour[]).filter(
    (way) => way !== 'decline' && formats.every((format) => canMisbehave(way, format)),
  );
  return (
    <div class="consent">
      <Prompt>{verifier.name ?? commonName(verifier.signer?.subject) ?? 'Somebody'} asks</Prompt>
      <p class="fine">{verifier.signer === undefined ? 'Nobody signed this request.' : `Signed by ${verifier.signer.subject}`}</p>
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
            <p class="plate" style={{ backgroundColor: match.credential.look.backgroundColor, color: match.credential.look.textColor }}>
              {match.credential.look.name}
            </p>
            <p>These leave the phone, and nothing else of the card:</p>
            <dl>
              {match.claims.map(({ path, value }) => (
                <div key={path.join('.')}>
                  <dt>{nameOf(path, match.credential.labels)}</dt>
                  <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
                </div>
              ))}
            </dl>
          </div>
        );
      })}
      {request.canBeAnswered && (
        <>
          <label for="misbehave">Misbehave</label>
          <select
            id="misbehave"
            aria-describedby="misbehaviour"
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
          <small id="misbehaviour" aria-live="polite">
            {misbehave === '' ? '' : MISBEHAVIOURS[misbehave].about}
          </small>
        </>
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
              void handset.present(request, misbehave === '' ? undefined : misbehave);
            }}
          >
            {misbehave === '' ? 'Show' : 'Cheat'}
          </button>
        )}
        <button type="button" class="quiet" disabled={isBusy} onClick={() => void handset.decline(request)}>
          Decline
        </button>
      </div>
    </div>
  );
}

function Prompt({ children }: { readonly children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <h3 ref={heading} tabIndex={-1}>
      {children}
    </h3>
  );
}

function commonName(subject = ''): string | undefined {
  return /(?:^|,\s*)CN=((?:[^,\\]|\\.)+)/.exec(subject)?.[1];
}
