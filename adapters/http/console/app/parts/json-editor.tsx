import { useEffect, useState } from 'preact/hooks';
import { Copy } from './copy.tsx';

type Props = {
  readonly label: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
};

/** JSON that is typed, beside a form of the same: what is no JSON yet changes nothing. */
export function JsonEditor({ label, value, onChange }: Props) {
  const written = JSON.stringify(value, null, 2);
  const [text, setText] = useState(written);
  const parsed = read(text);
  const isSame = 'value' in parsed && JSON.stringify(parsed.value, null, 2) === written;
  useEffect(() => {
    // Typed text stays as it is typed, with its spaces.
    if (!isSame) setText(written);
  }, [written]);
  const input = (typed: string) => {
    setText(typed);
    const now = read(typed);
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
