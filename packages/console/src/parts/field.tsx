import { useId } from 'preact/hooks';
import { at, type Path, textAt } from './json-paths.ts';
import type { Draft, DraftProblem } from './use-draft.ts';

type Props = {
  readonly draft: Draft;
  readonly path: Path;
  readonly label: string;
  readonly hint?: string;
  readonly kind?: 'text' | 'number' | 'checkbox';
  readonly choices?: Readonly<Record<string, string>>;
  readonly isFixed?: boolean;
  readonly unstated?: boolean;
};

/** One member of what is edited, with what the service says of it. */
export function Field({ draft, path, label, hint, kind = 'text', choices, isFixed = false, unstated = false }: Props) {
  const id = useId();
  const told = toldOf(draft.told, path);
  const common = {
    disabled: isFixed,
    'aria-invalid': told.some(({ isWarning }) => !isWarning) ? true : undefined,
    'aria-describedby': told.length > 0 || hint !== undefined ? id : undefined,
  } as const;
  const write = (text: string) => draft.change(path, text === '' ? undefined : kind === 'number' ? Number(text) : text);
  const value = at(draft.value, ...path);
  const notes = (
    <div id={id}>
      {hint !== undefined && <p class="fine">{hint}</p>}
      <Remarks told={told} />
    </div>
  );
  if (kind === 'checkbox') {
    return (
      <div class="field">
        <label>
          <input
            {...common}
            type="checkbox"
            checked={typeof value === 'boolean' ? value : unstated}
            onChange={(event) => draft.change(path, event.currentTarget.checked)}
          />
          {label}
        </label>
        {notes}
      </div>
    );
  }
  const typed = {
    ...common,
    id: `${id}-control`,
    value: textAt(draft.value, ...path),
    spellcheck: false,
    onInput: (event: Event) => write((event.currentTarget as HTMLInputElement).value),
  };
  return (
    <div class="field">
      <label for={typed.id}>{label}</label>
      {choices !== undefined ? (
        <select {...typed}>
          {Object.entries(choices).map(([chosen, text]) => (
            <option key={chosen} value={chosen}>
              {text}
            </option>
          ))}
        </select>
      ) : kind === 'number' ? (
        <input {...typed} type="number" />
      ) : (
        <input {...typed} type="text" autocapitalize="none" />
      )}
      {notes}
    </div>
  );
}

export function toldOf(told: readonly DraftProblem[], path: Path): readonly DraftProblem[] {
  const dotted = path.join('.');
  return told.filter(({ path: member }) => member === dotted || member.startsWith(`${dotted}.`));
}

export function Remarks({ told }: { readonly told: readonly DraftProblem[] }) {
  return (
    <>
      {told.map(({ path, message, isWarning }) => (
        <p key={`${path} ${message}`} class={isWarning ? 'remark warned' : 'remark refused'}>
          {isWarning ? 'Warning' : 'Refused'}: {message}
        </p>
      ))}
    </>
  );
}
