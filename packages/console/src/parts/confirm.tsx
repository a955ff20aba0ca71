import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { About } from './about.tsx';
import { Problem } from './problem.tsx';
import { say } from './said.tsx';

type Props = {
  /** On the button that asks. */
  readonly label: string;
  readonly about?: string;
  readonly title: string;
  readonly children: ComponentChildren;
  /** @returns what to say when it is done. */
  readonly act: (form: FormData) => Promise<string>;
  readonly isGrave?: boolean;
};

/** Something that is not done by accident: a button, a question, and what came of it. */
export function Confirm({ label, about, title, children, act, isGrave = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [fault, setFault] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setFault(undefined);
    try {
      const done = await act(form);
      dialog.current?.close();
      say(done);
    } catch (error) {
      setFault(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" class={isGrave ? 'grave' : 'quiet'} onClick={() => dialog.current?.showModal()}>
        {label}
        <About about={about} />
      </button>
      <dialog ref={dialog} aria-label={title}>
        <article>
          <h2>{title}</h2>
          <form onSubmit={submit}>
            {children}
            {fault !== undefined && <Problem fault={fault} />}
            <footer>
              <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
                Back
              </button>
              <button type="submit" class={isGrave ? 'grave' : ''} aria-busy={isBusy} disabled={isBusy}>
                {label}
              </button>
            </footer>
          </form>
        </article>
      </dialog>
    </>
  );
}
