import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

/** A reference in a list of lists to another list, with its signers. */
export type ListPointer = {
  readonly uri: string;
  /** DER in standard base64. */
  readonly signers: readonly string[];
  readonly territory: string | undefined;
  readonly isListOfLists: boolean;
};

/** Limit of followed lists: Europe has about thirty, and more would serve a denial of service. */
export const MAX_POINTERS = 64;
/** Limit including skipped pointers: the same lists are published in several formats. */
export const MAX_POINTERS_READ = 256;
const MAX_SIGNERS = 20;
const MAX_QUALIFIERS = 20;

const LIST_OF_LISTS = /listofthelists$|ListOfTrustedLists$|LoTEType\/\w*ListOfLists$/i;
/** Machine-readable formats; the same lists are also published for humans. */
const READABLE = /tsl\+xml|jose|jwt|json/i;

export function isListOfLists(type: string): boolean {
  return LIST_OF_LISTS.test(type);
}

/** @returns an empty list for a format that is not machine-readable, an invalid address, or missing signers. */
export function toListPointer({
  uri,
  signers,
  territory,
  type = '',
  mimeType,
}: {
  readonly uri: unknown;
  readonly signers: readonly string[];
  readonly territory?: string | undefined;
  readonly type?: string | undefined;
  readonly mimeType?: string | undefined;
}): readonly ListPointer[] {
  const isUsable = typeof uri === 'string' && uri.length <= 2_000 && URL.canParse(uri);
  if (!isUsable || signers.length === 0) return [];
  if (mimeType !== undefined && !READABLE.test(mimeType)) return [];
  return [{ uri, signers: signers.slice(0, MAX_SIGNERS), territory, isListOfLists: isListOfLists(type) }];
}

/**
 * Parses the pointers of a list (TS 119 602 section 6.3.13). Unsupported pointers are skipped.
 * @throws TrustListRefusal `malformed` above the limit.
 */
export function parsePointers(value: Json | undefined): readonly ListPointer[] {
  if (!Array.isArray(value)) return [];
  if (value.length > MAX_POINTERS_READ) throw new TrustListRefusal('malformed', 'it has too many pointers');
  return value.filter(isJsonObject).flatMap((pointer) => {
    const qualifiers = listOf(pointer['LoTEQualifiers']).slice(0, MAX_QUALIFIERS);
    const signers = listOf(pointer['ServiceDigitalIdentities'])
      .slice(0, MAX_SIGNERS)
      .flatMap(({ X509Certificates: certificates }) => listOf(certificates).slice(0, MAX_SIGNERS))
      .flatMap(({ val }) => (typeof val === 'string' ? [val.replaceAll(/\s/g, '')] : []));
    return toListPointer({
      uri: pointer['LoTELocation'],
      signers,
      territory: qualifierOf(qualifiers, 'SchemeTerritory'),
      type: qualifierOf(qualifiers, 'LoTEType'),
      mimeType: qualifierOf(qualifiers, 'MimeType'),
    });
  });
}

/** Qualifiers are in one object or in several; the last one of a name counts. */
function qualifierOf(qualifiers: readonly JsonObject[], name: string): string | undefined {
  return textOf(qualifiers.findLast((qualifier) => Object.hasOwn(qualifier, name))?.[name]);
}

function listOf(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
