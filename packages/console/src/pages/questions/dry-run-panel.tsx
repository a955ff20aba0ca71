import { useState } from 'preact/hooks';
import { ask } from '../../api/call.ts';
import { useBusy } from '../../parts/use-busy.tsx';
import type { Draft } from '../../parts/use-draft.ts';
import type { Identity } from '../../shell/identities.ts';
import { dryRun, MAX_LENGTH, type Outcome } from './dry-run.ts';
import { inWords } from './question.ts';
import type { Trial } from './trial.ts';
import { TrialView } from './trial-view.tsx';

type Props = { readonly draft: Draft; readonly identity: Identity; readonly id: string; readonly mayTry: boolean };

/** A presentation at hand is held against the question: by the service, as far as the question is stored. */
export function DryRun({ draft, identity, id, mayTry }: Props) {
  const [outcome, setOutcome] = useState<Outcome>();
  const [trial, setTrial] = useState<Trial>();
  const [isBusy, run, problem] = useBusy();
  const isStored = mayTry && draft.isRead && !draft.isChanged;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget as HTMLFormElement).get('credential')).trim();
    setOutcome(undefined);
    setTrial(undefined);
    return run(async () => {
      if (text === '') throw new Error('Paste a presentation.');
      if (text.length > MAX_LENGTH) throw new Error('This is longer than any presentation.');
      if (isStored) setTrial(await attempt(identity, id, text));
      else setOutcome(await dryRun(text, draft.value));
    });
  };
  return (
    <section class="card" aria-labelledby="dry-run">
      <h2 id="dry-run">Dry run</h2>
      <form onSubmit={submit}>
        <label>
          {isStored ? 'An SD-JWT VC, an mdoc, or a presentation' : 'An SD-JWT VC, or a presentation of one'}
          <textarea name="credential" rows={3} spellcheck={false} autocomplete="off" />
        </label>
        <button type="submit" aria-busy={isBusy} disabled={isBusy}>
          Hold it against the question
        </button>
      </form>
      {problem}
      <div aria-live="polite">
        {trial !== undefined && <TrialView trial={trial} />}
        {outcome !== undefined && <DryOutcome outcome={outcome} />}
      </div>
      <p class="fine">
        {isStored
          ? 'The service checks it as it would an answer, and keeps nothing of it.'
          : 'Decoded in this page and sent nowhere. Signatures, status, validity and holder are not checked.'}
        {mayTry && !isStored && ' Save the question, and the service checks them.'}
      </p>
    </section>
  );
}

function attempt(identity: Identity, id: string, presentation: string): Promise<Trial> {
  const path = `/verifier/config/${encodeURIComponent(id)}/try`;
  // What it holds of a person does not stand in the list of calls.
  return ask<Trial>(identity, 'POST', path, { body: { presentation }, noted: { presentation: '…' } });
}

function DryOutcome({ outcome: { type, answers, disclosed } }: { readonly outcome: Outcome }) {
  if (answers.length === 0)
    return (
      <p>
        <strong>It answers nothing.</strong> Its type is <code>{type || 'unstated'}</code>, and the question asks for others.
      </p>
    );
  return (
    <>
      {answers.map(({ id, shown, missing }) => (
        <p key={id}>
          <strong>{missing.length === 0 ? `It would answer “${id}”.` : `It would not answer “${id}”.`}</strong>{' '}
          {shown.length > 0 && `There: ${inWords(shown)}. `}
          {missing.length > 0 && `Missing: ${inWords(missing)}.`}
        </p>
      ))}
      {disclosed.length > 0 && <p class="fine">It discloses {inWords(disclosed)}.</p>}
    </>
  );
}
