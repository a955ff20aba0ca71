import { useState } from 'preact/hooks';
import { Copy } from './copy.tsx';

type Props = { readonly label: string; readonly value: unknown; readonly onChange: (value: unknown) => void };

/** JSON that is typed, beside a form of the same: what is no JSON yet changes nothing. */
export function JsonEditor({ label, value, onChange }: Props) {
  const written = JSON.stringify(value, null, 2);
  // Typed text stays as it is typed, with its spaces, until the form says something else.
  const [typed, setTyped] = useState({ text: written, says: written });
  const text = typed.says === written ? typed.text : written;
  const parsed = read(text);
  const input = (typing: string) => {
    const now = read(typing);
    setTyped({ text: typing, says: 'value' in now ? JSON.stringify(now.value, null, 2) : written });
    if ('value' in now) onChange(now.value);
  };
  return (
    <div class="json-editor">
      <label>
        {label}
        <textarea
          spellcheck={false}
          rows={22}
          value={text}
          aria-invalid={'fault' in parsed ? true : undefined}
          aria-describedby="json-fault"
          onInput={(event) => input(event.currentTarget.value)}
        />
      </label>
      <p id="json-fault" class="fine" aria-live="polite">
        {'fault' in parsed ? `No JSON yet: ${parsed.fault}` : 'The form and this text are the same thing.'}
      </p>
      <Copy text={text} label="Copy JSON" />
    </div>
  );
}

export function read(text: string): { readonly value: unknown } | { readonly fault: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
}
