import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api/call.ts';
import { pasted } from '../pages/decoder/pasted.ts';
import type { Identity } from './identities.ts';
import type { PageEntry } from './pages.ts';
import { goTo } from './place.ts';

type Props = { readonly pages: readonly PageEntry[]; readonly identity: Identity };
/** As long as the interface takes names of sessions. */
const MAX_NAME = 2_000;

/** Ctrl-K: to a page by a part of its name, to a session by anything that names it, or else to the decoder. */
export function Palette({ pages, identity }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [isBusy, setBusy] = useState(false);
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
  // What was pasted is nobody else's.
  useEffect(() => {
    pasted.value = '';
  }, [identity]);
  const wanted = text.trim();
  const found = pages.filter(({ title }) => title.toLowerCase().includes(wanted.toLowerCase()));
  const leave = (name: string, id = '') => {
    dialog.current?.close();
    setText('');
    goTo(name, id);
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    const [page] = found;
    if (page !== undefined) return leave(page.name);
    setBusy(true);
    const canAsk = pages.some(({ name }) => name === 'sessions') && wanted.length <= MAX_NAME;
    const session = canAsk ? await sessionOf(identity, wanted).catch(() => undefined) : undefined;
    setBusy(false);
    if (session !== undefined) return leave('sessions', session);
    pasted.value = wanted;
    leave('decode');
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Find">
      <form onSubmit={submit}>
        <label>
          Find a page, or paste anything
          <input
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            spellcheck={false}
            aria-describedby="palette-takes"
          />
        </label>
        <p class="fine" id="palette-takes">
          A link, an id of a session, a token, a certificate, an mdoc, a DID: it leads to its page or is taken
          apart.
        </p>
        {found.length === 0 ? (
          <button type="submit" aria-busy={isBusy} disabled={isBusy}>
            Look for it
          </button>
        ) : (
          <ul>
            {found.map(({ name, title }) => (
              <li key={name}>
                <button type="button" class="quiet" onClick={() => leave(name)}>
                  {title}
                </button>
              </li>
            ))}
          </ul>
        )}
      </form>
    </dialog>
  );
}

/** What the service knows by this name, as far as the one who asks may see it. */
async function sessionOf(identity: Identity, q: string): Promise<string | undefined> {
  const sessions = await ask<readonly { readonly id: string }[]>(identity, 'GET', '/session', {
    query: { q, limit: 2 },
  });
  return sessions[0]?.id;
}
