import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Login } from './login.tsx';
import { goTo } from './place.ts';

/** Asks for another client, on whatever page: what is half done there stays. */
export function openLogin(): void {
  dispatchEvent(new Event('open-login'));
}

export function AnotherLogin() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const open = () => setOpen(true);
    addEventListener('open-login', open);
    return () => removeEventListener('open-login', open);
  }, []);
  // What is in it is there by now, so that its first field gets the focus.
  useLayoutEffect(() => {
    if (isOpen && !dialog.current?.open) dialog.current?.showModal();
  }, [isOpen]);
  const done = () => {
    dialog.current?.close();
    goTo('');
  };
  return (
    <dialog ref={dialog} aria-labelledby="another" onClose={() => setOpen(false)}>
      {isOpen && (
        <article>
          <h2 id="another">Log in as another client</h2>
          <Login done={done} />
        </article>
      )}
    </dialog>
  );
}
