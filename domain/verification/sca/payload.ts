import { z } from 'zod';
import { fieldErrors, PARSE_OPTIONS } from '../../shared/field-errors.ts';
import { strictInput } from '../../shared/input-object.ts';

const text = (maximum: number) => z.string().min(1).max(maximum);
const Line = text(500);
const DateTime = z.iso.datetime({ offset: true, error: 'a time such as 2026-12-01T09:30:00Z' });
const Interaction = { transaction_id: text(36), date_time: DateTime.optional() };
const Party = strictInput({ legal_name: Line, brand_name: Line, domain_name: Line });
const FREQUENCIES = [...['INDA', 'DAIL', 'WEEK', 'TOWK', 'TWMN', 'MNTH'], ...['TOMN', 'QUTR', 'FOMN', 'SEMI', 'YEAR', 'TYEA']];

/** Decimal places of an amount in this currency (ISO 4217). */
function digitsOf(currency: string): number {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
}

function isAmount(amount: number, currency: string): boolean {
  return /^[A-Z]{3}$/.test(currency) && Number(amount.toFixed(digitsOf(currency))) === amount;
}

/** TS12 1.0 section 4.3.1 */
const Payment = strictInput({
  ...Interaction,
  payee: strictInput({ name: Line, id: Line, logo: z.url().max(100_000).optional(), website: z.url().max(2048).optional() }),
  pisp: Party.optional(),
  execution_date: DateTime.optional(),
  currency: z.string().regex(/^[A-Z]{3}$/, 'three letters of ISO 4217'),
  amount: z.number(),
  amount_estimated: z.boolean().optional(),
  amount_earmarked: z.boolean().optional(),
  sct_inst: z.boolean().optional(),
  recurrence: strictInput({
    start_date: DateTime.optional(),
    end_date: DateTime.optional(),
    number: z.int().optional(),
    frequency: z.enum(FREQUENCIES),
    mit_options: strictInput({
      amount_variable: z.boolean().optional(),
      min_amount: z.number().optional(),
      max_amount: z.number().optional(),
      total_amount: z.number().optional(),
      initial_amount: z.number().optional(),
      initial_amount_number: z.int().optional(),
      apr: z.number().optional(),
    }).optional(),
  }).optional(),
})
  .refine(({ amount, currency }) => isAmount(amount, currency), {
    path: ['amount'],
    message: 'has more digits after the point than the currency (ISO 4217)',
    when: ({ issues }) => issues.length === 0,
  })
  .refine((payment) => payment.execution_date === undefined || payment.recurrence === undefined, {
    path: ['execution_date'],
    message: 'the dates of a recurring payment belong in recurrence',
  });

/** TS12 1.0 section 4.3.2 */
const Login = strictInput({ ...Interaction, service: text(100).optional(), action: text(140) });

/** TS12 1.0 section 4.3.3 */
const AccountAccess = strictInput({ ...Interaction, aisp: Party.optional(), description: text(140).optional() });

/** TS12 1.0 section 4.3.4 */
const Mandate = strictInput({
  ...Interaction,
  start_date: DateTime.optional(),
  end_date: DateTime.optional(),
  reference_number: text(50).optional(),
  creditor_id: text(50).optional(),
  purpose: text(1000).optional(),
  payment_payload: Payment.optional(),
}).refine((mandate) => mandate.purpose !== undefined || mandate.payment_payload !== undefined, {
  path: ['purpose'],
  message: 'set the purpose, or payment_payload',
});

/** Payloads that users of a European wallet confirm in a strong customer authentication (TS12 1.0 section 4.3). */
const PAYLOADS = {
  'urn:eudi:sca:payment:1': Payment,
  'urn:eudi:sca:login_risk_transaction:1': Login,
  'urn:eudi:sca:account_access:1': AccountAccess,
  'urn:eudi:sca:emandate:1': Mandate,
} as const;
export type ScaSchema = keyof typeof PAYLOADS;
export const SCA_SCHEMAS = Object.keys(PAYLOADS) as [ScaSchema, ...ScaSchema[]];
const PREFIX = 'urn:eudi:sca:';

/** Schemas by type of transaction data, for types whose name does not determine it. */
export type ScaSchemas = { readonly [type: string]: ScaSchema };

export function scaSchemaOf(type: string, schemas: ScaSchemas): ScaSchema | undefined {
  if (Object.hasOwn(PAYLOADS, type)) return type as ScaSchema;
  return Object.hasOwn(schemas, type) ? schemas[type] : undefined;
}

type Entry = { readonly type: string; readonly transaction_data_hashes_alg?: unknown; readonly payload?: unknown };
type Fault = { path: (string | number)[]; message: string };

/** Reasons why a wallet would reject this entry (TS12 1.0 sections 3.2 and 4.2); none for types outside TS12. */
export function findScaProblems(entry: Entry, schemas: ScaSchemas): readonly Fault[] {
  const schema = scaSchemaOf(entry.type, schemas);
  if (schema === undefined) {
    const message = `TS12 1.0 does not define this type; use one of ${SCA_SCHEMAS.join(', ')}`;
    return entry.type.startsWith(PREFIX) ? [{ path: ['type'], message }] : [];
  }
  const faults: Fault[] = [];
  if (entry.transaction_data_hashes_alg === undefined) {
    faults.push({ path: ['transaction_data_hashes_alg'], message: 'TS12 1.0 section 4.2 requires it' });
  }
  const { error } = PAYLOADS[schema].safeParse(entry.payload, PARSE_OPTIONS);
  for (const { path, message } of fieldErrors(error?.issues ?? [], entry.payload)) {
    faults.push({ path: ['payload', ...path.split('.').filter((part) => part !== '')], message });
  }
  return faults;
}
