import { parseElementValue } from '../formats/mdoc/element-values.ts';
import { assertMdocWithinLimits } from '../formats/mdoc/issue.ts';
import { collectFieldErrors, type FieldError, invalidFields, invalidInput } from '../shared/failure.ts';
import { isJsonObject, type JsonObject } from '../shared/json.ts';
import type { CredentialConfig } from './credential-config.ts';
import { findElementTypeProblems } from './element-types.ts';

/** Elements by namespace. */
type Elements = Readonly<Record<string, JsonObject>>;
type Placed = { readonly elements: Elements; readonly isKeyed: boolean };

/** Document types whose elements stand in a namespace of another name; of all others the two are the same. */
const CONVENTIONAL_NAMESPACES: ReadonlyMap<string, string> = new Map([
  // ISO/IEC 18013-5 section 7.2.1
  ['org.iso.18013.5.1.mDL', 'org.iso.18013.5.1'],
  // ISO/IEC 7367
  ['org.iso.7367.1.mVRC', 'org.iso.7367.1'],
]);

/**
 * The elements of an mdoc from claims as a source gives them. They come in one of two shapes:
 * - by namespace: every member is an object, and its name is a namespace that the configuration knows (`namespace`,
 *   a key of `claimsByNamespace`, the beginning of a path in `claims`, or the namespace of the document type);
 * - flat: the members are elements of one namespace, which is `namespace`, else the only key of `claimsByNamespace`,
 *   else the only one that `claims` describes, else the namespace of the document type.
 * A mixture of both is refused, and so is an object under a dotted name that is no known namespace: no element is
 * called so, and it would end up as one.
 * @throws Failure `invalid_input`; its path begins with `claims`.
 */
export function mdocElements(config: CredentialConfig, claims: JsonObject): Elements {
  return place(config, claims).elements;
}

/** What keeps claims from becoming an mdoc; paths begin with a dot, or are empty for all of them. */
export function findMdocProblems(config: CredentialConfig, claims: JsonObject): readonly FieldError[] {
  return collectFieldErrors(() => {
    const { elements, isKeyed } = place(config, claims);
    const faults = Object.entries(elements).flatMap(([namespace, members]) =>
      Object.entries(members).flatMap(([name, value]) =>
        collectFieldErrors(() => parseElementValue(namespace, name, value)).map((fault) =>
          isKeyed ? fault : { ...fault, path: fault.path.replace(`.${namespace}`, '') },
        ),
      ),
    );
    if (faults.length > 0) throw invalidFields(faults);
    assertMdocWithinLimits(elements);
  }, 'claims');
}

/** Elements whose type is not the one of their standard, of claims for which `findMdocProblems` finds nothing; paths begin with a dot. */
export function findMdocTypeProblems(config: CredentialConfig, claims: JsonObject): readonly FieldError[] {
  const { elements, isKeyed } = place(config, claims);
  return Object.entries(elements).flatMap(([namespace, members]) =>
    findElementTypeProblems(namespace, members).map(({ path, message }) => ({
      path: isKeyed ? `.${namespace}${path}` : path,
      message,
    })),
  );
}

/** The elements that the configuration itself holds; a namespace without any is only named there. */
export function staticElements({ claimsByNamespace = {} }: CredentialConfig): JsonObject | undefined {
  const given = Object.entries(claimsByNamespace).filter(([, members]) => Object.keys(members).length > 0);
  return given.length === 0 ? undefined : (Object.fromEntries(given) as JsonObject);
}

function place(config: CredentialConfig, claims: JsonObject): Placed {
  const entries = Object.entries(claims);
  // ISO/IEC 18013-5 section 9.1.2.4: a security object has digests of at least one element.
  if (entries.length === 0) throw invalidInput('claims', 'an mdoc needs at least one element');
  const known = knownNamespaces(config);
  const keyed = entries.filter(([name]) => known.has(name));
  if (keyed.length === 0) return { elements: { [flatNamespace(config)]: flat(claims) }, isKeyed: false };
  const elements: Record<string, JsonObject> = {};
  for (const [name, members] of entries) {
    const path = `claims.${name}`;
    if (!known.has(name)) throw invalidInput(path, 'stands beside namespaces, but is not one that is known');
    if (!isJsonObject(members)) throw invalidInput(path, 'a namespace is an object of elements');
    if (Object.keys(members).length > 0) elements[name] = members;
  }
  if (Object.keys(elements).length === 0) throw invalidInput('claims', 'an mdoc needs at least one element');
  return { elements, isKeyed: true };
}

function flat(claims: JsonObject): JsonObject {
  for (const [name, value] of Object.entries(claims)) {
    if (!name.includes('.') || !isJsonObject(value)) continue;
    const message = 'is no namespace of this configuration; name it in config.claimsByNamespace or config.claims';
    throw invalidInput(`claims.${name}`, message);
  }
  return claims;
}

function knownNamespaces(config: CredentialConfig): ReadonlySet<string> {
  const { namespace, claimsByNamespace = {} } = config;
  return new Set([
    ...(namespace === undefined ? [] : [namespace]),
    ...Object.keys(claimsByNamespace),
    ...describedNamespaces(config),
    conventionalNamespace(config),
  ]);
}

function flatNamespace(config: CredentialConfig): string {
  if (config.namespace !== undefined) return config.namespace;
  const conventional = conventionalNamespace(config);
  for (const names of [Object.keys(config.claimsByNamespace ?? {}), describedNamespaces(config)]) {
    const [only] = names;
    if (only === undefined) continue;
    if (names.length === 1) return only;
    if (names.includes(conventional)) return conventional;
    throw invalidInput('claims', 'belong to one of several namespaces; give config.namespace, or key them');
  }
  return conventional;
}

function describedNamespaces({ claims = [] }: CredentialConfig): readonly string[] {
  return [...new Set(claims.map(({ path: [first] }) => String(first)))];
}

function conventionalNamespace({ docType = '' }: CredentialConfig): string {
  return CONVENTIONAL_NAMESPACES.get(docType) ?? docType;
}
