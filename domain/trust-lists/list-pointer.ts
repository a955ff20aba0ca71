import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

/** Another list that a list of lists names, and who signs it. */
export type ListPointer = {
  readonly uri: string;
  /** DER in standard base64. */
  readonly signers: readonly string[];
  readonly territory: string | undefined;
  /** The other list points to lists itself. */
  readonly isListOfLists: boolean;
};

/** Europe has a few more than thirty lists; whoever names more wants to keep somebody busy. */
export const MAX_POINTERS = 64;
/** With those that are passed over: the same lists stand there in several forms. */
export const MAX_POINTERS_READ = 256;
const MAX_SIGNERS = 20;
/** Of one pointer; a list has a handful. */
const MAX_QUALIFIERS = 20;

const LIST_OF_LISTS = /listofthelists$|ListOfTrustedLists$|LoTEType\/\w*ListOfLists$/i;
/** What a program reads; the same lists stand there for people, too. */
const READABLE = /tsl\+xml|jose|jwt|json/i;

export function isListOfLists(type: string): boolean {
  return LIST_OF_LISTS.test(type);
}

/** @returns nothing for what programs do not read, or what names no address or nobody who signs. */
export function pointerOf({
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
 * TS 119 602 section 6.3.13. What is not understood points nowhere.
 * @throws TrustListRefusal `malformed` for more than anybody needs.
 */
export function parsePointers(value: Json | undefined): readonly ListPointer[] {
  if (!Array.isArray(value)) return [];
  if (value.length > MAX_POINTERS_READ) throw new TrustListRefusal('malformed', 'too many pointers');
  return value.filter(isJsonObject).flatMap((pointer) => {
    const qualifiers = listOf(pointer['LoTEQualifiers']).slice(0, MAX_QUALIFIERS);
    const signers = listOf(pointer['ServiceDigitalIdentities'])
      .slice(0, MAX_SIGNERS)
      .flatMap(({ X509Certificates: certificates }) => listOf(certificates).slice(0, MAX_SIGNERS))
      .flatMap(({ val }) => (typeof val === 'string' ? [val.replaceAll(/\s/g, '')] : []));
    return pointerOf({
      uri: pointer['LoTELocation'],
      signers,
      territory: qualifierOf(qualifiers, 'SchemeTerritory'),
      type: qualifierOf(qualifiers, 'LoTEType'),
      mimeType: qualifierOf(qualifiers, 'MimeType'),
    });
  });
}

/** Each stands in an object of its own, or all in one; the last of a name counts. */
function qualifierOf(qualifiers: readonly JsonObject[], name: string): string | undefined {
  return textOf(qualifiers.findLast((qualifier) => Object.hasOwn(qualifier, name))?.[name]);
}

function listOf(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
