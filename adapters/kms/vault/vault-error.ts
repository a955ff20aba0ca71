import { isJsonObject } from '../../../domain/shared/json.ts';
import { KeyRejectedError } from '../guarded-calls.ts';

const MAX_TEXT = 300;
/** Messages of Vault for a path without a mount, and for a missing namespace. */
const MISSING_PLACE = /no handler for route|namespace not found/;

/** Failed call, described for the operator. The request is never part of the description. */
export class VaultError extends Error {
  /** Status of a response of Vault itself; undefined without such a response. */
  readonly status: number | undefined;
  /** Messages of Vault, joined. */
  readonly text: string;

  constructor(message: string, status?: number, text = '') {
    super(message);
    this.name = 'VaultError';
    this.status = status;
    this.text = text;
  }
}

/**
 * Describes a response with a status other than 200 and 204.
 * @param secrets of the request, in case Vault repeats one of them.
 */
export function toVaultError(status: number, body: unknown, secrets: readonly string[]): VaultError {
  if (status >= 300 && status < 400) {
    return new VaultError(`it answered with a redirect (${status}), which is not followed; "address" must be the final address`);
  }
  // A proxy before Vault has a limit of its own, which only large texts exceed.
  if (status === 413) return new VaultError('the data to be signed is too large for it (413)', status);
  // Other servers at that address have other error formats.
  const errors = isJsonObject(body) && Array.isArray(body['errors']) ? body['errors'] : undefined;
  if (errors === undefined) return new VaultError(`the server there is not Vault: it answered ${status}`);
  const text = quotable(errors, secrets);
  return new VaultError(explained(status, text), status, text);
}

/** Excerpt of Vault's messages for the log: one line, short, without secrets of the request. */
export function quotable(texts: readonly unknown[], secrets: readonly string[] = []): string {
  let text = texts.filter((entry) => typeof entry === 'string').join('; ');
  for (const secret of secrets) if (secret !== '') text = text.replaceAll(secret, '…');
  return text
    .slice(0, 10 * MAX_TEXT)
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
    .slice(0, MAX_TEXT);
}

/** A failure that concerns only the key or the path of one call says nothing about Vault itself. */
export function asKeyRejected(error: unknown): unknown {
  if (!(error instanceof VaultError) || isMissingPlace(error)) return error;
  const { status, message } = error;
  return status === 400 || status === 403 || status === 404 || status === 413 ? new KeyRejectedError(message) : error;
}

/** Returns true if the mount or the namespace is missing. */
export function isMissingPlace({ status, text }: VaultError): boolean {
  return status === 404 && MISSING_PLACE.test(text);
}

function explained(status: number, text: string): string {
  if (status === 503 && /sealed/i.test(text)) return 'it is sealed; unseal it (`bao operator unseal`)';
  const words = text === '' ? '' : `: ${text}`;
  if (status === 404 && MISSING_PLACE.test(text)) return `it answered ${status}${words}; check "mount" and "namespace"`;
  return `it answered ${status}${words}`;
}
