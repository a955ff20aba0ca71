import { z } from 'zod';
import { algorithmOfCose, coseNumbersOf } from '../formats/cose/algorithms.ts';
import { textUpTo } from '../shared/bounds.ts';
import type { FieldError } from '../shared/failure.ts';
import { PUBLISHED_ALGORITHMS, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../shared/jwk.ts';

/**
 * Properties that the service writes into the metadata by itself. Values in a configuration must match what the service supports, because
 * wallets see the service's values only.
 */
export const DeclaredCapabilities = {
  cryptographic_binding_methods_supported: z
    .array(textUpTo(100))
    .max(20)
    .optional()
    .describe('Optional. dc+sd-jwt: `jwk`, mso_mdoc: `cose_key`, none without keyBinding; any other value is rejected'),
  credential_signing_alg_values_supported: z
    .array(z.union([textUpTo(100), z.number().int()]))
    .max(20)
    .optional()
    .describe(
      'Optional. The algorithm of the signing key, such as `ES256`, for mso_mdoc also as COSE number; any other ' + 'value is rejected',
    ),
};

/** JSON Schema rules of a configuration by format, for the API document. */
export const FORMAT_RULES = {
  if: { properties: { format: { const: 'mso_mdoc' } }, required: ['format'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: {
    required: ['docType'],
    properties: { ...capabilitiesOf('mso_mdoc'), claims: pathsOf({ minItems: 2, prefixItems: [{ type: 'string' }, { type: 'string' }] }) },
  },
  else: {
    properties: {
      ...Object.fromEntries(['docType', 'namespace', 'claimsByNamespace'].map((name) => [name, { not: {} }])),
      ...capabilitiesOf('dc+sd-jwt'),
      claims: pathsOf({
        prefixItems: [{ type: 'string' }],
        items: { anyOf: [{ type: 'string' }, { type: 'null' }, { type: 'integer', minimum: 0 }] },
      }),
    },
  },
};

function capabilitiesOf(format: string) {
  const numbers = format === 'mso_mdoc' ? SIGNING_ALGORITHMS.flatMap(coseNumbersOf) : [];
  return {
    cryptographic_binding_methods_supported: { items: { const: bindingMethodOf({ format }) } },
    credential_signing_alg_values_supported: { items: { enum: [...PUBLISHED_ALGORITHMS, ...numbers] } },
  };
}

function pathsOf(path: object) {
  return { items: { properties: { path } } };
}

type DeclaredMetadata = {
  readonly format: string;
  readonly cryptographic_binding_methods_supported?: readonly string[] | undefined;
  readonly credential_signing_alg_values_supported?: readonly (string | number)[] | undefined;
};

/** The cryptographic binding method of a format (OpenID4VCI 1.0 section 12.2.4). */
export function bindingMethodOf({ format }: Pick<DeclaredMetadata, 'format'>): string {
  return format === 'mso_mdoc' ? 'cose_key' : 'jwk';
}

/** Declared binding methods that the service does not use for this configuration. */
export function findBindingMethodProblems(config: DeclaredMetadata, keyBinding: boolean): readonly FieldError[] {
  const method = bindingMethodOf(config);
  return (config.cryptographic_binding_methods_supported ?? []).flatMap((stated, index) => {
    if (keyBinding && stated === method) return [];
    const message = keyBinding
      ? `"${stated}" is not the binding method of ${config.format}; use ${method}`
      : `"${stated}" needs keyBinding`;
    return [{ path: `config.cryptographic_binding_methods_supported.${index}`, message }];
  });
}

/** Declared signature algorithms that no key of the service supports. */
export function findAlgorithmProblems(config: DeclaredMetadata): readonly FieldError[] {
  return findUnsupportedAlgorithms(config, SIGNING_ALGORITHMS);
}

/**
 * Declared algorithms that differ from the signing key's.
 * @param algorithm of the signing key; undefined without a key.
 */
export function findOtherAlgorithmProblems(config: DeclaredMetadata, algorithm: SigningAlgorithm | undefined): readonly FieldError[] {
  return findUnsupportedAlgorithms(config, algorithm === undefined ? [] : [algorithm]);
}

function findUnsupportedAlgorithms(config: DeclaredMetadata, supportedAlgorithms: readonly SigningAlgorithm[]): readonly FieldError[] {
  return (config.credential_signing_alg_values_supported ?? []).flatMap((stated, index) => {
    const algorithm = parseAlgorithmName(stated, config.format);
    if (algorithm !== undefined && supportedAlgorithms.includes(algorithm)) return [];
    const offered = supportedAlgorithms.flatMap((algorithm) => namesOf(algorithm, config.format)).join(', ');
    const message =
      supportedAlgorithms.length === 0
        ? 'this credential has no signing key yet'
        : `"${stated}" is not the algorithm of its key; use ${offered}`;
    return [{ path: `config.credential_signing_alg_values_supported.${index}`, message }];
  });
}

/** OpenID4VCI 1.0 appendices A.2.2 and A.3.2: COSE numbers for an mdoc (drafts used names), JOSE names for an SD-JWT VC. */
function parseAlgorithmName(stated: string | number, format: string): SigningAlgorithm | undefined {
  if (typeof stated === 'number') return format === 'mso_mdoc' ? algorithmOfCose(stated) : undefined;
  const published = PUBLISHED_ALGORITHMS.find((name) => name === stated);
  return published === 'Ed25519' ? 'EdDSA' : published;
}

function namesOf(algorithm: SigningAlgorithm, format: string): readonly (string | number)[] {
  return format === 'mso_mdoc' ? [algorithm, ...coseNumbersOf(algorithm)] : [algorithm];
}
