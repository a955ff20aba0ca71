import { say } from './said.tsx';

export function Copy({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say('Copied.');
    } catch {
      say('The browser does not let pages copy here. Mark the text and copy it by hand.');
    }
  };
  return (
    <button type="button" class="quiet small" onClick={copy}>
      {label}
    </button>
  );
}
