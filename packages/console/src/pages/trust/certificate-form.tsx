import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { CertificatePurpose, FoundCertificate, Reading } from './read-certificates.ts';
import { NOTHING, readForm } from './read-form.ts';

type Props = {
  /** Says what the certificates of the form are wanted for. */
  readonly wanted: (form: FormData) => CertificatePurpose;
  /** @returns why not, in a sentence; undefined when it was done. */
  readonly take: (found: readonly FoundCertificate[], form: FormData) => string | undefined;
  readonly button: string;
  readonly children?: ComponentChildren;
  readonly label: string;
  readonly isOptional?: boolean;
};

/** Certificates from files or pasted: what is good is taken, what is not is told in a sentence. */
export function CertificateForm({ wanted, take, button, children, label, isOptional = false }: Props) {
  const [told, setTold] = useState<Pick<Reading, 'refused' | 'hasKey'>>(NOTHING);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const given = new FormData(form);
    const isEmpty = isOptional && given.get('text') === '' && given.getAll('file').every(isNoFile);
    const reading = isEmpty ? NOTHING : await readForm(given, wanted(given));
    const { found, refused: notTaken, hasKey } = reading;
    const isTaken = isEmpty || found.length > 0;
    const why = isTaken ? take(found, given) : undefined;
    setTold({ refused: [...notTaken, ...(why === undefined ? [] : [why])], hasKey });
    // Nothing of what was refused stays in the page, least of all a key.
    for (const field of form.querySelectorAll<HTMLInputElement>('[name="file"], [name="text"]')) field.value = '';
    if (why === undefined && isTaken) form.reset();
  };
  // What was said is of what was given before.
  const anew = () => setTold(NOTHING);
  return (
    <form onSubmit={submit}>
      {children}
      <label>
        {label}: files (PEM or DER)
        <input type="file" name="file" multiple accept=".pem,.crt,.cer,.der,.txt" onChange={anew} />
      </label>
      <label>
        or pasted (PEM)
        <textarea name="text" rows={3} spellcheck={false} onInput={anew} placeholder="-----BEGIN CERTIFICATE-----" />
      </label>
      <button type="submit">{button}</button>
      <div aria-live="assertive">
        {told.refused.length > 0 && (
          <div class="problem">
            <p>
              <strong>{told.hasKey ? 'Stop: that is a private key.' : 'Not taken:'}</strong>
            </p>
            <ul class="plain-list">
              {told.refused.map((sentence) => (
                <li key={sentence}>{sentence}</li>
              ))}
            </ul>
          </div>
        )}
      </div>
    </form>
  );
}

/** An empty field of files has one without content. */
function isNoFile(entry: FormDataEntryValue): boolean {
  return entry instanceof File && entry.size === 0;
}
