import { z } from 'zod';
import { algorithmOfCose, coseNumbersOf } from '../formats/cose/algorithms.ts';
import { textUpTo } from '../shared/bounds.ts';
import type { FieldError } from '../shared/failure.ts';
import { PUBLISHED_ALGORITHMS, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../shared/jwk.ts';

/**
 * Members of the metadata that the service writes by itself. Who states them in a configuration is held to what it does,
 * since wallets are told nothing else.
 */
export const StatedAbilities = {
  cryptographic_binding_methods_supported: z
    .array(textUpTo(100))
    .max(20)
    .optional()
    .describe('Need not be stated. dc+sd-jwt: `jwk`, mso_mdoc: `cose_key`, none without keyBinding; another one is refused'),
  credential_signing_alg_values_supported: z
    .array(z.union([textUpTo(100), z.number().int()]))
    .max(20)
    .optional()
    .describe(
      'Need not be stated. The algorithm of the key that signs, such as `ES256`, for mso_mdoc also by its COSE numbers; another ' +
        'one is refused',
    ),
};

/** What these and the other members of a configuration may be by its format, for the API document. */
export const BY_FORMAT = {
  if: { properties: { format: { const: 'mso_mdoc' } }, required: ['format'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: {
    required: ['docType'],
    properties: {
      ...abilitiesOf('mso_mdoc'),
      claims: pathsOf({ minItems: 2, prefixItems: [{ type: 'string' }, { type: 'string' }] }),
    },
  },
  else: {
    properties: {
      ...Object.fromEntries(['docType', 'namespace', 'claimsByNamespace'].map((name) => [name, { not: {} }])),
      ...abilitiesOf('dc+sd-jwt'),
      claims: pathsOf({
        prefixItems: [{ type: 'string' }],
        items: { anyOf: [{ type: 'string' }, { type: 'null' }, { type: 'integer', minimum: 0 }] },
      }),
    },
  },
};

function abilitiesOf(format: string) {
  const numbers = format === 'mso_mdoc' ? SIGNING_ALGORITHMS.flatMap(coseNumbersOf) : [];
  return {
    cryptographic_binding_methods_supported: { items: { const: bindingMethodOf({ format }) } },
    credential_signing_alg_values_supported: { items: { enum: [...PUBLISHED_ALGORITHMS, ...numbers] } },
  };
}

function pathsOf(path: object) {
  return { items: { properties: { path } } };
}

type Stated = {
  readonly format: string;
  readonly cryptographic_binding_methods_supported?: readonly string[] | undefined;
  readonly credential_signing_alg_values_supported?: readonly (string | number)[] | undefined;
};

/** How credentials of a format are bound to a key (OpenID4VCI 1.0 section 12.2.4). */
export function bindingMethodOf({ format }: Pick<Stated, 'format'>): string {
  return format === 'mso_mdoc' ? 'cose_key' : 'jwk';
}

/** Binding methods that the service does not use for this configuration. */
export function findBindingMethodProblems(config: Stated, keyBinding: boolean): readonly FieldError[] {
  const method = bindingMethodOf(config);
  return (config.cryptographic_binding_methods_supported ?? []).flatMap((stated, index) => {
    if (keyBinding && stated === method) return [];
    const message = keyBinding ? `"${stated}" is not how ${config.format} is bound; it is ${method}` : `"${stated}" needs keyBinding`;
    return [{ path: `config.cryptographic_binding_methods_supported.${index}`, message }];
  });
}

/** Algorithms of signatures that nobody could expect of any key of the service. */
export function findAlgorithmProblems(config: Stated): readonly FieldError[] {
  return foreignAlgorithms(config, SIGNING_ALGORITHMS);
}

/**
 * Algorithms that the key which signs does not have.
 * @param algorithm of that key; undefined where there is none.
 */
export function findOtherAlgorithmProblems(config: Stated, algorithm: SigningAlgorithm | undefined): readonly FieldError[] {
  return foreignAlgorithms(config, algorithm === undefined ? [] : [algorithm]);
}

function foreignAlgorithms(config: Stated, known: readonly SigningAlgorithm[]): readonly FieldError[] {
  return (config.credential_signing_alg_values_supported ?? []).flatMap((stated, index) => {
    const named = algorithmNamed(stated, config.format);
    if (named !== undefined && known.includes(named)) return [];
    const offered = known.flatMap((algorithm) => namesOf(algorithm, config.format)).join(', ');
    const message = known.length === 0 ? 'no key signs this credential yet' : `"${stated}" is not how it is signed; that is ${offered}`;
    return [{ path: `config.credential_signing_alg_values_supported.${index}`, message }];
  });
}

/** OpenID4VCI 1.0 appendices A.2.2 and A.3.2: numbers of COSE for an mdoc, where drafts had names, and names of JOSE. */
function algorithmNamed(stated: string | number, format: string): SigningAlgorithm | undefined {
  if (typeof stated === 'number') return format === 'mso_mdoc' ? algorithmOfCose(stated) : undefined;
  const published = PUBLISHED_ALGORITHMS.find((name) => name === stated);
  return published === 'Ed25519' ? 'EdDSA' : published;
}

function namesOf(algorithm: SigningAlgorithm, format: string): readonly (string | number)[] {
  return format === 'mso_mdoc' ? [algorithm, ...coseNumbersOf(algorithm)] : [algorithm];
}
