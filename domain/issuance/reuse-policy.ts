import { strictObject, z } from 'zod';
import type { FieldError } from '../shared/failure.ts';
import { MDOC_LIFETIME_SECONDS } from './credential.ts';

/** Methods A to D of ARF 3.0, topic 10 section D, as ETSI TS 119 472-3 section 4.2.4.2 and wallets spell them. */
export const REUSE_METHODS = ['once_only', 'limited_time', 'rotating-batch', 'per-relying-party'] as const;
type ReuseMethod = (typeof REUSE_METHODS)[number];

/** What each method has to say (ETSI TS 119 472-3 section 4.2.4.2, ARF 3.0 ISSU_45, ISSU_48, ISSU_54, ISSU_55). */
const PARAMETERS = {
  once_only: ['batch_size', 'reissue_trigger_unused'],
  limited_time: ['reissue_trigger_lifetime_left'],
  'rotating-batch': ['batch_size', 'reissue_trigger_lifetime_left'],
  'per-relying-party': ['batch_size', 'reissue_trigger_unused', 'reissue_trigger_lifetime_left'],
} as const satisfies Record<ReuseMethod, readonly string[]>;
const NAMES = ['batch_size', 'reissue_trigger_unused', 'reissue_trigger_lifetime_left'] as const;

/** As many keys as one request may bring altogether. */
const MAX_BATCH = 100;

const ReuseOption = strictObject({
  details: z
    .array(z.enum(REUSE_METHODS))
    .min(1)
    .max(REUSE_METHODS.length)
    .describe(
      '`once_only` (method A) or `limited_time` (B), one of both and never both together; `rotating-batch` (C) and ' +
        '`per-relying-party` (D) besides, for wallets that know them. What is preferred comes first',
    ),
  batch_size: z
    .number()
    .int()
    .min(2)
    .max(MAX_BATCH)
    .optional()
    .describe('Copies of one request, for all methods but `limited_time`; more are refused'),
  reissue_trigger_unused: z
    .number()
    .int()
    .min(0)
    .optional()
    .describe('`once_only`, `per-relying-party`: wallets ask for another batch when so few are left unused; below batch_size'),
  reissue_trigger_lifetime_left: z
    .number()
    .int()
    .min(1)
    .max(3_155_760_000)
    .optional()
    .describe('All methods but `once_only`: seconds before the end at which wallets ask for new ones; below lifeTime'),
});
type ReuseOption = z.infer<typeof ReuseOption>;

export const CredentialReusePolicy = strictObject({
  id: z.literal('arf_annex_ii').describe('The policies of the ARF'),
  options: z.array(ReuseOption).min(1).max(REUSE_METHODS.length).describe('What is preferred comes first'),
}).meta({ id: 'CredentialReusePolicy' });
export type CredentialReusePolicy = z.infer<typeof CredentialReusePolicy>;

type Judged = {
  readonly config: { readonly format: string };
  readonly keyBinding: boolean;
  readonly lifeTime?: number | null | undefined;
  readonly credentialReusePolicy?: CredentialReusePolicy | null | undefined;
};

/**
 * From this lifetime on the expiry times of a batch are always more than two minutes apart (RFC 9901 section 10.1): a third of their
 * range, which is a tenth of the lifetime, lies between the earliest and the latest. A write warns below it.
 */
export const SPREAD_LIFETIME_SECONDS = 3600;
/** From this lifetime on each of a hundred copies finds an expiry time of its own. Policies with batches need it. */
export const MIN_BATCH_LIFETIME_SECONDS = 1210;

/** What is wrong with the policy of a configuration: in itself, or beside its other members. */
export function findReusePolicyProblems(body: Judged): readonly FieldError[] {
  const { credentialReusePolicy: policy } = body;
  if (policy === null || policy === undefined) return [];
  const options = policy.options.flatMap((option, index) =>
    findOptionProblems(option, body).map(({ path, message }) => ({
      path: `credentialReusePolicy.options.${index}.${path}`,
      message,
    })),
  );
  return [...findMethodProblems(policy), ...options];
}

function findMethodProblems({ options }: CredentialReusePolicy): readonly FieldError[] {
  const methods = options.flatMap(({ details }) => details);
  const path = 'credentialReusePolicy.options';
  if (new Set(methods).size !== methods.length) return [{ path, message: 'a method stands twice' }];
  const base = methods.filter((method) => method === 'once_only' || method === 'limited_time');
  // ARF 3.0 ISSU_40, note a
  if (base.length === 1 || methods.length === 0) return [];
  return [{ path, message: 'exactly one of once_only and limited_time has to be there (ARF 3.0 ISSU_40)' }];
}

function findOptionProblems(option: ReuseOption, body: Judged): readonly FieldError[] {
  const needed = new Set(option.details.flatMap((method): readonly string[] => PARAMETERS[method]));
  const given = NAMES.flatMap((path): FieldError[] => {
    if (needed.has(path) === (option[path] !== undefined)) return [];
    const methods = option.details.join(', ');
    const message = needed.has(path) ? `is missing for ${methods}` : `says nothing of ${methods}`;
    return [{ path, message }];
  });
  return [...given, ...findBoundProblems(option, body)];
}

function findBoundProblems(option: ReuseOption, { config, keyBinding, lifeTime }: Judged): readonly FieldError[] {
  const { batch_size: size, reissue_trigger_unused: unused, reissue_trigger_lifetime_left: left } = option;
  const faults: FieldError[] = [];
  if (size !== undefined && !keyBinding)
    faults.push({ path: 'batch_size', message: 'needs keyBinding: copies are told apart by their keys' });
  if (size !== undefined && unused !== undefined && unused >= size)
    faults.push({ path: 'reissue_trigger_unused', message: 'has to be below batch_size' });
  const lives = lifeTime ?? (config.format === 'mso_mdoc' ? MDOC_LIFETIME_SECONDS : undefined);
  if (left !== undefined && (lives === undefined || left >= lives)) {
    const message = lives === undefined ? 'needs a lifeTime: nothing is left of what never ends' : 'has to be below lifeTime';
    faults.push({ path: 'reissue_trigger_lifetime_left', message });
  }
  // ARF 3.0 ISSU_36
  if (size !== undefined && lives !== undefined && lives < MIN_BATCH_LIFETIME_SECONDS) {
    const message = `needs a lifeTime of ${MIN_BATCH_LIFETIME_SECONDS} seconds or more, so that copies cannot be linked by their end`;
    faults.push({ path: 'batch_size', message });
  }
  return faults;
}

/**
 * Most copies that one request is answered with.
 * @param batchSize of the issuer, for configurations without a policy of their own.
 */
export function mostCopies({ credentialReusePolicy: policy }: Pick<Judged, 'credentialReusePolicy'>, batchSize: number): number {
  if (policy === null || policy === undefined) return Math.max(1, batchSize);
  return Math.max(...policy.options.map(({ batch_size }) => batch_size ?? 1));
}
