import { useEffect, useRef, useState } from 'preact/hooks';
import type { PageEntry } from './pages.ts';
import { goTo } from './place.ts';

/** Ctrl-K: to a page by a part of its name. */
export function Palette({ pages }: { readonly pages: readonly PageEntry[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  useEffect(() => {
    const open = () => {
      setText('');
      if (!dialog.current?.open) dialog.current?.showModal();
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      open();
    };
    addEventListener('keydown', onKey);
    addEventListener('open-palette', open);
    return () => {
      removeEventListener('keydown', onKey);
      removeEventListener('open-palette', open);
    };
  }, []);
  const found = pages.filter(({ title }) => title.toLowerCase().includes(text.trim().toLowerCase()));
  const go = (name: string) => {
    dialog.current?.close();
    goTo(name);
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Find">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (found[0] !== undefined) go(found[0].name);
        }}
      >
        <label>
          Find a page
          <input value={text} onInput={(event) => setText(event.currentTarget.value)} spellcheck={false} />
        </label>
        <ul>
          {found.map(({ name, title }) => (
            <li key={name}>
              <button type="button" class="quiet" onClick={() => go(name)}>
                {title}
              </button>
            </li>
          ))}
        </ul>
      </form>
    </dialog>
  );
}
