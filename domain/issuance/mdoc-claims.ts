import { parseElementValue } from '../formats/mdoc/element-values.ts';
import { assertMdocWithinLimits } from '../formats/mdoc/issue.ts';
import { collectFieldErrors, type FieldError, invalidFields, invalidInput } from '../shared/failure.ts';
import { isJsonObject, type JsonObject } from '../shared/json.ts';
import type { CredentialConfig } from './credential-config.ts';
import { findElementTypeProblems } from './element-types.ts';

type Elements = Readonly<Record<string, JsonObject>>;
type NamespacedElements = { readonly elements: Elements; readonly isKeyed: boolean };

/** Document types whose namespace has a different name; for all others the two names are equal. */
const CONVENTIONAL_NAMESPACES: ReadonlyMap<string, string> = new Map([
  // ISO/IEC 18013-5 section 7.2.1
  ['org.iso.18013.5.1.mDL', 'org.iso.18013.5.1'],
  // ISO/IEC 7367
  ['org.iso.7367.1.mVRC', 'org.iso.7367.1'],
]);

/**
 * Assigns claims to the namespaces of an mdoc. A source sends them in one of two shapes:
 * - by namespace: every property is an object under a namespace of the configuration (`namespace`, a key of `claimsByNamespace`, the
 * beginning of a path in `claims`, or the namespace of the document type);
 * - flat: the properties are elements of one namespace, which is `namespace`, else the only key of `claimsByNamespace`,
 * else the only one that `claims` describes, else the namespace of the document type.
 * A mixture of both is rejected. An object under a dotted name that is no namespace of the configuration is rejected as well: no element
 * has such a name, and it would be issued as one.
 * @throws Failure `invalid_input`; its path begins with `claims`.
 */
export function mdocElements(config: CredentialConfig, claims: JsonObject): Elements {
  return resolveNamespaces(config, claims).elements;
}

/** Problems that prevent issuing these claims as an mdoc; paths begin with a dot, or are empty for problems of all claims. */
export function findMdocProblems(config: CredentialConfig, claims: JsonObject): readonly FieldError[] {
  return collectFieldErrors(() => {
    const { elements, isKeyed } = resolveNamespaces(config, claims);
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

/** Type errors of elements in claims that pass `findMdocProblems`; paths begin with a dot. */
export function findMdocTypeProblems(config: CredentialConfig, claims: JsonObject): readonly FieldError[] {
  const { elements, isKeyed } = resolveNamespaces(config, claims);
  return Object.entries(elements).flatMap(([namespace, members]) =>
    findElementTypeProblems(namespace, members).map(({ path, message }) => ({ path: isKeyed ? `.${namespace}${path}` : path, message })),
  );
}

/** The elements in the configuration itself; a namespace without elements only declares its name. */
export function staticElements({ claimsByNamespace = {} }: CredentialConfig): JsonObject | undefined {
  const filledNamespaces = Object.entries(claimsByNamespace).filter(([, members]) => Object.keys(members).length > 0);
  return filledNamespaces.length === 0 ? undefined : (Object.fromEntries(filledNamespaces) as JsonObject);
}

function resolveNamespaces(config: CredentialConfig, claims: JsonObject): NamespacedElements {
  const entries = Object.entries(claims);
  // ISO/IEC 18013-5 section 9.1.2.4: a security object has digests of at least one element.
  if (entries.length === 0) throw invalidInput('claims', 'an mdoc requires at least one element');
  const namespaces = knownNamespaces(config);
  const namespacedEntries = entries.filter(([name]) => namespaces.has(name));
  if (namespacedEntries.length === 0) return { elements: { [flatNamespace(config)]: requireFlatClaims(claims) }, isKeyed: false };
  const elements: Record<string, JsonObject> = {};
  for (const [name, members] of entries) {
    const path = `claims.${name}`;
    if (!namespaces.has(name)) throw invalidInput(path, 'is next to namespaces and is not a known property');
    if (!isJsonObject(members)) throw invalidInput(path, 'a namespace is an object of elements');
    if (Object.keys(members).length > 0) elements[name] = members;
  }
  if (Object.keys(elements).length === 0) throw invalidInput('claims', 'an mdoc requires at least one element');
  return { elements, isKeyed: true };
}

function requireFlatClaims(claims: JsonObject): JsonObject {
  for (const [name, value] of Object.entries(claims)) {
    if (!name.includes('.') || !isJsonObject(value)) continue;
    const message = 'is not a namespace of this configuration; add it to config.claimsByNamespace or config.claims';
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
    const [namespace] = names;
    if (namespace === undefined) continue;
    if (names.length === 1) return namespace;
    if (names.includes(conventional)) return conventional;
    throw invalidInput('claims', 'belong to one of several namespaces; set config.namespace, or group them by namespace');
  }
  return conventional;
}

function describedNamespaces({ claims = [] }: CredentialConfig): readonly string[] {
  return [...new Set(claims.map(({ path: [namespace] }) => String(namespace)))];
}

function conventionalNamespace({ docType = '' }: CredentialConfig): string {
  return CONVENTIONAL_NAMESPACES.get(docType) ?? docType;
}
