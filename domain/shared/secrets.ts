import { invalidInput } from './failure.ts';
import { valueAt } from './json.ts';

/** Stands for a stored secret in every answer; secrets are never read back. */
export const HIDDEN = '***';

/** A member that is a secret. */
export type SecretMember = {
  /** What it is called in the name of a variable. */
  readonly variable: string;
  /** Members, dotted, that say where it is sent. Without them the placeholder of an answer cannot stand for it. */
  readonly sentTo?: readonly string[];
  /** What is said when it has to be given again. */
  readonly again?: string;
};

type Secrets = { readonly secrets: Readonly<Record<string, SecretMember>> };

/** A document as an answer shows it. */
export function hideSecrets<T extends object>({ secrets }: Secrets, document: T): T {
  const given = Object.keys(secrets).filter((path) => (valueAt(document, path) ?? '') !== '');
  return given.reduce((shown, path) => withValue(shown, path, HIDDEN), document);
}

/**
 * One who reads a document and writes it back sends the placeholder: then the stored secret stays, as long as it is sent to the same place.
 * @throws Failure `invalid_input` when there is no such secret to keep.
 */
export function keepSecrets<T extends object>({ secrets }: Secrets, next: T, before: object | undefined): T {
  let kept = next;
  for (const [path, { sentTo = [], again = 'give the secret itself' }] of Object.entries(secrets)) {
    if (valueAt(next, path) !== HIDDEN) continue;
    const known = valueAt(before, path);
    const isSame = sentTo.every((place) => valueAt(before, place) === valueAt(next, place));
    if (known === undefined || !isSame) throw invalidInput(path, again);
    kept = withValue(kept, path, known);
  }
  return kept;
}

type Members = Readonly<Record<string, unknown>>;

function withValue<T extends object>(document: T, path: string, value: unknown): T {
  const [name = '', ...below] = path.split('.');
  const member = (document as Members)[name] as object;
  return { ...document, [name]: below.length === 0 ? value : withValue(member, below.join('.'), value) };
}
