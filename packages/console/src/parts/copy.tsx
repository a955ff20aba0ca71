import { About } from './about.tsx';
import { say } from './said.tsx';

type Props = { readonly text: string; readonly label?: string; readonly about?: string };

export function Copy({ text, label = 'Copy', about }: Props) {
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
      <About about={about} />
    </button>
  );
}
