import { invalidInput } from './failure.ts';
import { valueAt } from './json.ts';

/** Placeholder for a stored secret in responses; secrets are never returned. */
export const HIDDEN = '***';

export type SecretMember = {
  /** Its name in environment variables. */
  readonly variable: string;
  /** Dotted properties with the destination of the secret. If they change, the placeholder is not accepted. */
  readonly sentTo?: readonly string[];
  /** Message when the secret must be given again. */
  readonly hint?: string;
};

type Secrets = { readonly secrets: Readonly<Record<string, SecretMember>> };

/** Replaces secrets for a response. */
export function hideSecrets<T extends object>({ secrets }: Secrets, document: T): T {
  const presentPaths = Object.keys(secrets).filter((path) => (valueAt(document, path) ?? '') !== '');
  return presentPaths.reduce((hidden, path) => withValue(hidden, path, HIDDEN), document);
}

/**
 * Replaces placeholders of a written document by the stored secrets, as long as their destination is unchanged.
 * @throws Failure `invalid_input` without a stored secret.
 */
export function keepSecrets<T extends object>({ secrets }: Secrets, document: T, previousDocument: object | undefined): T {
  let result = document;
  for (const [path, { sentTo = [], hint = 'send the secret, not a masked value' }] of Object.entries(secrets)) {
    if (valueAt(document, path) !== HIDDEN) continue;
    const storedSecret = valueAt(previousDocument, path);
    const isSame = sentTo.every((property) => valueAt(previousDocument, property) === valueAt(document, property));
    if (storedSecret === undefined || !isSame) throw invalidInput(path, hint);
    result = withValue(result, path, storedSecret);
  }
  return result;
}

type Members = Readonly<Record<string, unknown>>;

function withValue<T extends object>(document: T, path: string, value: unknown): T {
  const [name = '', ...remainingPath] = path.split('.');
  const member = (document as Members)[name] as object;
  return { ...document, [name]: remainingPath.length === 0 ? value : withValue(member, remainingPath.join('.'), value) };
}
