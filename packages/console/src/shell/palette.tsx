import { useEffect, useRef, useState } from 'preact/hooks';
import { pasted } from '../pages/decoder/pasted.ts';
import { isSecret } from '../parts/secret.ts';
import type { Identity } from './identities.ts';
import type { PageEntry } from './pages.ts';
import { goTo } from './place.ts';

type Props = { readonly pages: readonly PageEntry[]; readonly identity: Identity };
const MAX_NAME = 200;

export function Palette({ pages, identity }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [told, setTold] = useState('');
  const write = (now: string) => {
    setText(now);
    setTold('');
  };
  useEffect(() => {
    const open = () => {
      write('');
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
  useEffect(() => {
    pasted.value = '';
  }, [identity]);
  const wanted = text.trim();
  const found = pages.filter(({ title }) => title.toLowerCase().includes(wanted.toLowerCase()));
  const mayLook = pages.some(({ name }) => name === 'sessions');
  const isName = mayLook && wanted.length <= MAX_NAME && !isSecret(wanted);
  const leave = (name: string, id = '') => {
    dialog.current?.close();
    write('');
    goTo(name, id);
  };
  const busily = async (work: () => Promise<void>) => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      setTold(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const [page] = found;
    if (page !== undefined) return leave(page.name);
    return busily(async () => {
      const { lookUp } = await import('./look-up.ts');
      const led = await lookUp({ identity, text: wanted, pages: pages.map(({ name }) => name) });
      if (led === undefined) {
        pasted.value = wanted;
        leave('decode');
      } else if ('session' in led) leave('sessions', led.session);
      else if ('told' in led) setTold(led.told);
      else {
        dialog.current?.close();
        location.hash = led.address;
      }
    });
  };
  const askFor = () =>
    busily(async () => {
      const { sessionCalled } = await import('./look-up.ts');
      const session = await sessionCalled(identity, wanted);
      if (session === undefined) setTold('No session that you may see is called so.');
      else leave('sessions', session);
    });
  return (
    <dialog ref={dialog} class="palette" aria-label="Find">
      <form onSubmit={submit}>
        <label>
          Find a page, or paste anything
          <input value={text} onInput={(event) => write(event.currentTarget.value)} spellcheck={false} aria-describedby="palette-takes" />
        </label>
        <p class="fine" id="palette-takes">
          A link, an id of a session, a token, a certificate, an mdoc, a DID: it leads to its page or is taken apart in this window.
        </p>
        {found.length === 0 ? (
          <>
            <button type="submit" aria-busy={isBusy} disabled={isBusy}>
              Open it
            </button>
            {isName && (
              <button type="button" class="quiet" disabled={isBusy} onClick={askFor}>
                Ask the service for a session called “{wanted}”
              </button>
            )}
          </>
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
        <p role="status">{told}</p>
      </form>
    </dialog>
  );
}
