import { RENDERINGS } from '../adapters/http/output/failures.ts';
import {
  type ErrorExplanation,
  FAILURE_REFERENCE,
  REFUSAL_REFERENCE,
  SESSION_FAILURE_REFERENCE,
  WEBHOOK_FAULT_REFERENCE,
} from '../domain/shared/error-reference.ts';

type Codes = readonly (readonly [code: string, entry: ErrorExplanation])[];
type WireNames = { readonly status: number } & Readonly<Partial<Record<'wallet' | 'vci' | 'oauth' | 'vp', string>>>;

const INTERNAL_ERROR_STATUS = 500;
const DEFAULT_STATUS = 400;
const STATUSES: Readonly<Record<string, WireNames>> = RENDERINGS;

/** The sections of docs/reference/errors.md. A test compares them with the page. */
export function describeErrors(): string {
  const failures = Object.entries(FAILURE_REFERENCE);
  const isApi = (entry: ErrorExplanation) => entry.where === FAILURE_REFERENCE.invalid_input.where;
  return [
    section(
      'Rejected calls',
      '`code` of an error of the administrative interface.',
      listByFix(
        failures.filter(([, entry]) => isApi(entry)),
        describeCall,
      ),
    ),
    section(
      'Rejected wallet requests',
      WALLETS,
      listByFix(
        failures.filter(([, entry]) => !isApi(entry)),
        describeWalletError,
      ),
    ),
    `Codes with another \`error\` in responses to wallets:\n\n${wireNames()}`,
    section('Failed sessions', '`failure.code` of a session.', listByFlow(Object.entries(SESSION_FAILURE_REFERENCE))),
    section('Failed webhooks', WEBHOOKS, listByFix(Object.entries(WEBHOOK_FAULT_REFERENCE), describePlain)),
    section('Rejected presentations', PRESENTATIONS, listByFix(Object.entries(REFUSAL_REFERENCE), describePlain)),
  ].join('\n\n');
}

const WALLETS = `\`error\` of responses to wallets, with status 400 unless another is given.
The log has the code with the reason, and names the session once it is determined.
A wallet whose authentication or key proof is invalid is rejected before its code is looked up, and the session does not change.`;

const WEBHOOKS = `\`reason\` of the warning "… webhook failed" in the log; \`detail\` of \`deliveries\` has it in words.
\`unreachable\` is also in sessions, reports and \`GET /cache/stats\`.`;

const PRESENTATIONS = `\`reason\` in \`report\`, and \`error\` in the body of the presentation webhook.
\`missing <id>\` and \`missing credential_sets[n]\` say what the response as a whole lacks.`;

function section(title: string, intro: string, lists: string): string {
  return `## ${title}\n\n${intro}\n\n${lists}`;
}

/** Codes with the same fix share it above their list. */
function listByFix(codes: Codes, describe: (code: string, entry: ErrorExplanation) => string): string {
  const groups = Map.groupBy(codes, ([, { fix }]) => fix);
  const singles = codes.filter(([, { fix }]) => groups.get(fix)?.length === 1);
  const shared = [...groups].filter(([, group]) => group.length > 1);
  return [
    ...shared.map(
      ([fix, group]) => `**Fix:** ${fix}\n\n${group.map(([code, entry]) => `${describe(code, entry)}${link(entry)}`).join('\n')}`,
    ),
    ...(shared.length === 0 ? [] : ['**Other fixes:**']),
    singles.map(([code, entry]) => `${describe(code, entry)}\n  *Fix:* ${entry.fix}${link(entry)}`).join('\n'),
  ].join('\n\n');
}

function describeCall(code: string, entry: ErrorExplanation): string {
  return `- \`${code}\`, ${statusOf(code)}: ${explain(entry)}`;
}

/** The meaning repeats the code in words, so it is left out if there is a cause. */
function describeWalletError(code: string, { where, meaning, cause }: ErrorExplanation): string {
  const status = statusOf(code) === DEFAULT_STATUS ? '' : `${statusOf(code)}, `;
  return `- \`${code}\` (${status}${where}): ${cause === '' ? `${meaning}.` : cause}`;
}

const describePlain = (code: string, entry: ErrorExplanation) => `- \`${code}\`: ${explain(entry)}`;

const statusOf = (code: string) => STATUSES[code]?.status ?? INTERNAL_ERROR_STATUS;

function listByFlow(codes: Codes): string {
  const flows = Map.groupBy(codes, ([, { where = '' }]) => where);
  return [...flows].map(([flow, group]) => `### Flow: ${flow}\n\n${listByFix(group, describePlain)}`).join('\n\n');
}

const explain = ({ meaning, cause }: ErrorExplanation) => `${meaning}. ${cause}`.trim();

const link = ({ page }: ErrorExplanation) => (page === undefined ? '' : ` [More](${page})`);

/** The codes by their `error` at each kind of endpoint, if it is another one. */
function wireNames(): string {
  const surfaces = { oauth: 'OAuth', vci: 'Credential endpoints', vp: 'Presentation endpoints' } as const;
  const lists = Object.entries(surfaces).map(([surface, title]) => {
    const renamed = Object.entries(STATUSES).flatMap(([code, names]) => {
      const error = names[surface as keyof typeof surfaces] ?? names.wallet ?? code;
      return error === code ? [] : [{ code, error }];
    });
    const groups = [...Map.groupBy(renamed, ({ error }) => error)];
    return `- ${title}: ${groups.map(([error, codes]) => `\`${error}\` for ${codes.map(({ code }) => `\`${code}\``).join(', ')}`).join(';\n  ')}`;
  });
  return lists.join('\n');
}
