import { createHmac } from 'node:crypto';
import { listUpTo, textUpTo } from '../shared/bounds.ts';
import type { FieldError } from '../shared/failure.ts';
import type { SessionId } from '../shared/ids.ts';
import { canonicalJson, type Json, type JsonObject, valueAt } from '../shared/json.ts';
import type { IssuedBatch } from '../status-lists/status-list.ts';
import type { CredentialConfig } from './credential-config.ts';

/** Paths to the claims that identify the subject of a credential. */
export const SubjectClaims = listUpTo(listUpTo(textUpTo(200), 8), 10).describe(
  'Paths to the claims that together identify the subject of a credential, such as `[["personal_administrative_number"]]`; for an ' +
    'mdoc namespace and element. Each value is a string, a number or a boolean',
);
export type SubjectClaims = readonly (readonly string[])[];

/** A batch of credentials with the keyed hash of its subject. */
export type IdentifiedBatch = {
  readonly fingerprint: string;
  readonly batch: Pick<IssuedBatch, 'id' | 'sessionId' | 'credentialConfigurationId'>;
  /** End of the credentials; null if they do not expire. */
  readonly endsAt: Date | null;
  /** Grant of the access token; absent for a token of an external authorization server. */
  readonly grantId?: string;
  /**
   * Time of the access token, for a token whose grant is not stored: the change fails if credentials of the subject were revoked at this
   * time or later. For a stored grant, the recorded order of grants and revocations decides.
   */
  readonly authorizedAt: Date;
};

/** Batches of one session that are recorded for one subject, without duplicates. */
export type ReleasedBatches = { readonly fingerprint: string; readonly sessionId: SessionId; readonly batchIds: readonly string[] };

/** Limit in characters. */
const MAX_VALUE = 1_000;

/**
 * A text that identifies a subject, independent of the order of the paths.
 * @param isFlat true for an mdoc whose elements may be given without a namespace.
 * @returns undefined if a path selects no value.
 */
export function subjectText(claims: JsonObject, paths: SubjectClaims, isFlat = false): string | undefined {
  const subjectValue = (path: readonly string[]) =>
    subjectValueAt(claims, path) ?? (isFlat ? subjectValueAt(claims, path.slice(1)) : undefined);
  const pathValues = paths.map((path) => [path, subjectValue(path)] as const);
  if (pathValues.some(([, value]) => value === undefined)) return undefined;
  const texts = pathValues.map((entry) => canonicalJson(entry));
  return `[${[...new Set(texts)].sort().join()}]`;
}

/** Missing claims without which the credential cannot be found by its subject later. */
export function findMissingSubjectClaims(claims: JsonObject, paths: SubjectClaims | null | undefined): readonly FieldError[] {
  return (paths ?? [])
    .filter((path) => subjectValueAt(claims, path) === undefined)
    .map((path) => ({
      path: `.${path.join('.')}`,
      message: `must identify the subject of the credential (subjectClaims): a string of at most ${MAX_VALUE} characters, a number or a boolean`,
    }));
}

/** @returns a keyed hash, which reveals nothing without the key. */
export function fingerprintOf(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}

export function findSubjectProblems(
  config: CredentialConfig,
  paths: SubjectClaims | null | undefined,
  hasStatus: boolean,
): readonly FieldError[] {
  if (paths === null || paths === undefined) return [];
  const refuse = (message: string) => [{ path: 'subjectClaims', message }];
  if (!hasStatus) return refuse('requires statusManagement: a credential without a status cannot be revoked');
  if (config.format === 'mso_mdoc' && paths.some((path) => path.length < 2))
    return refuse('paths of an mdoc begin with a namespace and an element');
  return [];
}

function subjectValueAt(claims: JsonObject, path: readonly string[]): Json | undefined {
  const value = valueAt(claims, path) as Json | undefined;
  if (typeof value === 'string') return value !== '' && value.length <= MAX_VALUE ? value : undefined;
  return typeof value === 'number' || typeof value === 'boolean' ? value : undefined;
}
