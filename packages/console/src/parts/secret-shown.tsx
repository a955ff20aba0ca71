import { useEffect, useRef } from 'preact/hooks';
import { Copy } from './copy.tsx';

export type NewSecret = { readonly clientId: string; readonly secret: string };

type Props = { readonly of: string; readonly secret: string; readonly hint: string; readonly close: () => void };

/** A secret, once: it is in no memory of this page when the dialog is closed. */
export function SecretShown({ of, secret, hint, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!dialog.current?.open) dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="secret-of" onClose={close}>
      <article>
        <h2 id="secret-of">The secret of {of}</h2>
        <p>It is shown this once. {hint}</p>
        <p class="secret">
          <code>{secret}</code> <Copy text={secret} label="Copy the secret" />
        </p>
        <footer>
          <button type="button" onClick={() => dialog.current?.close()}>
            I have it
          </button>
        </footer>
      </article>
    </dialog>
  );
}
