import { useEffect, useRef, useState } from 'preact/hooks';
import { isSecret } from './secret.ts';

type Props = { readonly label: string; readonly value: string; readonly seek: (text: string) => void };

/** Between two keys, so that the service is asked once for a word. */
const PAUSE_MS = 300;
const MAX_LENGTH = 200;

/** Filters a list by what is typed, soon after the last key, or at once on Enter. */
export function SearchField({ label, value, seek }: Props) {
  const [text, setText] = useState(value);
  const sought = useRef(value);
  const send = () => {
    const wanted = text.trim();
    if (wanted === sought.current || isSecret(wanted)) return;
    sought.current = wanted;
    seek(wanted);
  };
  useEffect(() => {
    // A link within the page changes it, too.
    if (value === sought.current) return;
    sought.current = value;
    setText(value);
  }, [value]);
  useEffect(() => {
    const timer = setTimeout(send, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label>
      {label}
      <input
        type="search"
        value={text}
        maxLength={MAX_LENGTH}
        spellcheck={false}
        autocapitalize="none"
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={send}
      />
      {isSecret(text) && <small>This looks like a secret: the service is not asked for it.</small>}
    </label>
  );
}
