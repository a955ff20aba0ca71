import { isJsonObject } from '../../../domain/shared/json.ts';
import { KeyRefused } from '../guarded-calls.ts';

const MAX_TEXT = 300;
/** What Vault calls a path under which nothing is mounted, and a namespace that is not there. */
const MISSING_PLACE = /no handler for route|namespace not found/;

/** A call that was not served, in words for the operator. What was sent is never part of them. */
export class VaultError extends Error {
  /** Of an answer that Vault itself wrote; undefined when no such answer came. */
  readonly status: number | undefined;
  /** Vault's own words, all in one. */
  readonly text: string;

  constructor(message: string, status?: number, text = '') {
    super(message);
    this.name = 'VaultError';
    this.status = status;
    this.text = text;
  }
}

/**
 * What an answer with a status other than 200 and 204 says.
 * @param secrets of the request, in case that Vault repeats one of them.
 */
export function refusal(status: number, body: unknown, secrets: readonly string[]): VaultError {
  if (status >= 300 && status < 400) {
    return new VaultError(
      `it answered with a redirect (${status}), which is not followed; "address" has to name a server that serves calls itself`,
    );
  }
  // A proxy before Vault has a limit of its own, which one large text exceeds and others do not.
  if (status === 413) return new VaultError('what was to be signed is too large for it (413)', status);
  // Whatever else listens on that address has other words.
  const errors = isJsonObject(body) && Array.isArray(body['errors']) ? body['errors'] : undefined;
  if (errors === undefined) return new VaultError(`what listens there is no Vault: it answered ${status}`);
  const text = quotable(errors, secrets);
  return new VaultError(explained(status, text), status, text);
}

/** A part of Vault's own words that may stand in a log: one line, short, without what was secret in the request. */
export function quotable(texts: readonly unknown[], secrets: readonly string[] = []): string {
  let text = texts.filter((entry) => typeof entry === 'string').join('; ');
  for (const secret of secrets) if (secret !== '') text = text.replaceAll(secret, '…');
  return text
    .slice(0, 10 * MAX_TEXT)
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
    .slice(0, MAX_TEXT);
}

/** What concerns only the key or the path of one call says nothing about whether Vault works. */
export function asKeyRefused(error: unknown): unknown {
  if (!(error instanceof VaultError) || isMissingPlace(error)) return error;
  const { status, message } = error;
  return status === 400 || status === 403 || status === 404 || status === 413 ? new KeyRefused(message) : error;
}

/** Whether the mount or the namespace is not there. */
export function isMissingPlace({ status, text }: VaultError): boolean {
  return status === 404 && MISSING_PLACE.test(text);
}

function explained(status: number, text: string): string {
  if (status === 503 && /sealed/i.test(text)) return 'it is sealed; unseal it (`bao operator unseal`)';
  const words = text === '' ? '' : `: ${text}`;
  if (status === 404 && MISSING_PLACE.test(text)) return `it answered ${status}${words}; check "mount" and "namespace"`;
  return `it answered ${status}${words}`;
}
