import { strictObject, z } from 'zod';
import type { FieldError } from '../shared/failure.ts';
import { MDOC_LIFETIME_SECONDS } from './credential.ts';

/** Methods A to D of ARF 3.0, topic 10 section D, in the spelling of ETSI TS 119 472-3 section 4.2.4.2 and of wallets. */
export const REUSE_METHODS = ['once_only', 'limited_time', 'rotating-batch', 'per-relying-party'] as const;
type ReuseMethod = (typeof REUSE_METHODS)[number];

/** Required parameters of each method (ETSI TS 119 472-3 section 4.2.4.2, ARF 3.0 ISSU_45, ISSU_48, ISSU_54, ISSU_55). */
const PARAMETERS = {
  once_only: ['batch_size', 'reissue_trigger_unused'],
  limited_time: ['reissue_trigger_lifetime_left'],
  'rotating-batch': ['batch_size', 'reissue_trigger_lifetime_left'],
  'per-relying-party': ['batch_size', 'reissue_trigger_unused', 'reissue_trigger_lifetime_left'],
} as const satisfies Record<ReuseMethod, readonly string[]>;
const NAMES = ['batch_size', 'reissue_trigger_unused', 'reissue_trigger_lifetime_left'] as const;

/** Equals the largest number of keys in one request. */
const MAX_BATCH = 100;

const ReuseOption = strictObject({
  details: z
    .array(z.enum(REUSE_METHODS))
    .min(1)
    .max(REUSE_METHODS.length)
    .describe(
      'Either `once_only` (method A) or `limited_time` (B), not both; additionally `rotating-batch` (C) and ' +
        '`per-relying-party` (D) for wallets that support them. The preferred one is first',
    ),
  batch_size: z
    .number()
    .int()
    .min(2)
    .max(MAX_BATCH)
    .optional()
    .describe('Copies of one request, for all methods except `limited_time`; more are rejected'),
  reissue_trigger_unused: z
    .number()
    .int()
    .min(0)
    .optional()
    .describe('`once_only`, `per-relying-party`: number of unused copies at which wallets request another batch; below batch_size'),
  reissue_trigger_lifetime_left: z
    .number()
    .int()
    .min(1)
    .max(3_155_760_000)
    .optional()
    .describe('All methods except `once_only`: seconds before the expiry at which wallets request new copies; below lifeTime'),
});
type ReuseOption = z.infer<typeof ReuseOption>;

export const CredentialReusePolicy = strictObject({
  id: z.literal('arf_annex_ii').describe('The policies of the ARF'),
  options: z.array(ReuseOption).min(1).max(REUSE_METHODS.length).describe('The preferred one is first'),
}).meta({ id: 'CredentialReusePolicy' });
export type CredentialReusePolicy = z.infer<typeof CredentialReusePolicy>;

type ReuseSettings = {
  readonly config: { readonly format: string };
  readonly keyBinding: boolean;
  readonly lifeTime?: number | null | undefined;
  readonly credentialReusePolicy?: CredentialReusePolicy | null | undefined;
};

/**
 * Above this lifetime the expiry times of a batch are always more than two minutes apart (RFC 9901 section 10.1): their range is a tenth of
 * the lifetime, and a third of it lies between the earliest and the latest. Shorter lifetimes cause a warning.
 */
export const SPREAD_LIFETIME_SECONDS = 3600;
/** Above this lifetime each of a hundred copies can get a distinct expiry time. Policies with batches need it. */
export const MIN_BATCH_LIFETIME_SECONDS = 1210;

/** Problems of a configuration's reuse policy, also in combination with its other properties. */
export function findReusePolicyProblems(body: ReuseSettings): readonly FieldError[] {
  const { credentialReusePolicy: policy } = body;
  if (policy === null || policy === undefined) return [];
  const options = policy.options.flatMap((option, index) =>
    findOptionProblems(option, body).map(({ path, message }) => ({ path: `credentialReusePolicy.options.${index}.${path}`, message })),
  );
  return [...findMethodProblems(policy), ...options];
}

function findMethodProblems({ options }: CredentialReusePolicy): readonly FieldError[] {
  const methods = options.flatMap(({ details }) => details);
  const path = 'credentialReusePolicy.options';
  if (new Set(methods).size !== methods.length) return [{ path, message: 'a method is listed twice' }];
  const base = methods.filter((method) => method === 'once_only' || method === 'limited_time');
  // ARF 3.0 ISSU_40, note a
  if (base.length === 1 || methods.length === 0) return [];
  return [{ path, message: 'exactly one of once_only and limited_time is required (ARF 3.0 ISSU_40)' }];
}

function findOptionProblems(option: ReuseOption, body: ReuseSettings): readonly FieldError[] {
  const needed = new Set(option.details.flatMap((method): readonly string[] => PARAMETERS[method]));
  const parameterProblems = NAMES.flatMap((path): FieldError[] => {
    if (needed.has(path) === (option[path] !== undefined)) return [];
    const methods = option.details.join(', ');
    const message = needed.has(path) ? `is missing for ${methods}` : `does not apply to ${methods}`;
    return [{ path, message }];
  });
  return [...parameterProblems, ...findBoundProblems(option, body)];
}

function findBoundProblems(option: ReuseOption, { config, keyBinding, lifeTime }: ReuseSettings): readonly FieldError[] {
  const { batch_size: size, reissue_trigger_unused: unused, reissue_trigger_lifetime_left: lifetimeLeft } = option;
  const faults: FieldError[] = [];
  if (size !== undefined && !keyBinding) faults.push({ path: 'batch_size', message: 'requires keyBinding: copies differ by their keys' });
  if (size !== undefined && unused !== undefined && unused >= size)
    faults.push({ path: 'reissue_trigger_unused', message: 'must be below batch_size' });
  const lifetimeSeconds = lifeTime ?? (config.format === 'mso_mdoc' ? MDOC_LIFETIME_SECONDS : undefined);
  if (lifetimeLeft !== undefined && (lifetimeSeconds === undefined || lifetimeLeft >= lifetimeSeconds)) {
    const message = lifetimeSeconds === undefined ? 'requires a lifeTime: the credential never expires' : 'must be below lifeTime';
    faults.push({ path: 'reissue_trigger_lifetime_left', message });
  }
  // ARF 3.0 ISSU_36
  if (size !== undefined && lifetimeSeconds !== undefined && lifetimeSeconds < MIN_BATCH_LIFETIME_SECONDS) {
    const message = `requires a lifeTime of ${MIN_BATCH_LIFETIME_SECONDS} seconds or more, so that copies cannot be linked by their expiry`;
    faults.push({ path: 'batch_size', message });
  }
  return faults;
}

/**
 * Limit of the copies in one response.
 * @param batchSize of the issuer, for configurations without a reuse policy.
 */
export function maxBatchSize({ credentialReusePolicy: policy }: Pick<ReuseSettings, 'credentialReusePolicy'>, batchSize: number): number {
  if (policy === null || policy === undefined) return Math.max(1, batchSize);
  return Math.max(...policy.options.map(({ batch_size }) => batch_size ?? 1));
}
