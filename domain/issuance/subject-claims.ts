import { createHmac } from 'node:crypto';
import { listUpTo, textUpTo } from '../shared/bounds.ts';
import type { FieldError } from '../shared/failure.ts';
import type { SessionId } from '../shared/ids.ts';
import { canonicalJson, type Json, type JsonObject, valueAt } from '../shared/json.ts';
import type { IssuedBatch } from '../status-lists/status-list.ts';
import type { CredentialConfig } from './credential-config.ts';

/** Paths to the claims that say who somebody is. */
export const SubjectClaims = listUpTo(listUpTo(textUpTo(200), 8), 10).describe(
  'Paths to the claims that together say whom a credential is about, such as `[["personal_administrative_number"]]`; of an ' +
    'mdoc namespace and element. Each is a text, a number or a truth value',
);
export type SubjectClaims = readonly (readonly string[])[];

/** A batch of credentials, and a keyed hash of whom it is about. */
export type IdentifiedBatch = {
  readonly fingerprint: string;
  readonly batch: Pick<IssuedBatch, 'id' | 'sessionId' | 'credentialConfigurationId'>;
  /** Of the credentials; null where they have no end. */
  readonly endsAt: Date | null;
  /** Grant of the access token; absent for a token of an external authorization server. */
  readonly grantId?: string;
  /**
   * When the wallet got its access token, for a token whose grant is not stored: the change fails if credentials of the person
   * were revoked at this time or later. For a stored grant the order counts in which grants and revocations were recorded.
   */
  readonly authorizedAt: Date;
};

/** Batches of one session that are on record as of one person, each once. */
export type ReleasedBatches = { readonly fingerprint: string; readonly sessionId: SessionId; readonly batchIds: readonly string[] };

/** Characters of one value. */
const MAX_VALUE = 1_000;

/**
 * A text that is the same for the same person, whatever the order of the paths.
 * @param isFlat of an mdoc, elements may stand there without their namespace.
 * @returns undefined where a path leads nowhere.
 */
export function subjectText(claims: JsonObject, paths: SubjectClaims, isFlat = false): string | undefined {
  const valueAtEither = (path: readonly string[]) => identityAt(claims, path) ?? (isFlat ? identityAt(claims, path.slice(1)) : undefined);
  const named = paths.map((path) => [path, valueAtEither(path)] as const);
  if (named.some(([, value]) => value === undefined)) return undefined;
  const texts = named.map((entry) => canonicalJson(entry));
  return `[${[...new Set(texts)].sort().join()}]`;
}

/** What keeps a credential from being found by its person later. */
export function missingSubjects(claims: JsonObject, paths: SubjectClaims | null | undefined): readonly FieldError[] {
  return (paths ?? [])
    .filter((path) => identityAt(claims, path) === undefined)
    .map((path) => ({
      path: `.${path.join('.')}`,
      message: `has to say whom the credential is about (subjectClaims), by a text of at most ${MAX_VALUE} characters, a number or a truth value`,
    }));
}

/** @returns what says nothing to whoever lacks the key. */
export function fingerprintOf(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}

/** What is wrong with the member `subjectClaims` of a configuration. */
export function findSubjectProblems(
  config: CredentialConfig,
  paths: SubjectClaims | null | undefined,
  hasStatus: boolean,
): readonly FieldError[] {
  if (paths === null || paths === undefined) return [];
  const refuse = (message: string) => [{ path: 'subjectClaims', message }];
  if (!hasStatus) return refuse('needs statusManagement: what has no status cannot be revoked');
  if (config.format === 'mso_mdoc' && paths.some((path) => path.length < 2))
    return refuse('paths of an mdoc begin with a namespace and an element');
  return [];
}

function identityAt(claims: JsonObject, path: readonly string[]): Json | undefined {
  const value = valueAt(claims, path) as Json | undefined;
  if (typeof value === 'string') return value !== '' && value.length <= MAX_VALUE ? value : undefined;
  return typeof value === 'number' || typeof value === 'boolean' ? value : undefined;
}
