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
const STATUSES: Readonly<Record<string, WireNames>> = RENDERINGS;

/** The sections of docs/reference/errors.md. A test compares them with the page. */
export function describeErrors(): string {
  const failures = Object.entries(FAILURE_REFERENCE);
  const isApi = (entry: ErrorExplanation) => entry.where === FAILURE_REFERENCE.invalid_input.where;
  return [
    section(
      'Rejected calls',
      '`code` of an error of the administrative interface.',
      callTable(failures.filter(([, entry]) => isApi(entry))),
    ),
    section('Rejected wallet requests', WALLETS, walletTable(failures.filter(([, entry]) => !isApi(entry)))),
    `Codes with another \`error\` in responses to wallets:\n\n${wireNames()}`,
    section('Failed sessions', '`failure.code` of a session.', sessionTable(Object.entries(SESSION_FAILURE_REFERENCE))),
    section('Failed webhooks', WEBHOOKS, plainTable(Object.entries(WEBHOOK_FAULT_REFERENCE))),
    section('Rejected presentations', PRESENTATIONS, plainTable(Object.entries(REFUSAL_REFERENCE))),
  ].join('\n\n');
}

const WALLETS = `\`error\` of responses to wallets. The log has the code with the reason, and names the session once it is determined.
A wallet whose authentication or key proof is invalid is rejected before its code is looked up, and the session does not change.`;

const WEBHOOKS = `\`reason\` of the warning "… webhook failed" in the log; \`detail\` of \`deliveries\` has it in words.
\`unreachable\` is also in sessions, reports and \`GET /cache/stats\`.`;

const PRESENTATIONS = `\`reason\` in \`report\`, and \`error\` in the body of the presentation webhook.
\`missing <id>\` and \`missing credential_sets[n]\` say what the response as a whole lacks.`;

function section(title: string, intro: string, table: string): string {
  return `## ${title}\n\n${intro}\n\n${table}`;
}

function callTable(codes: Codes): string {
  return table(
    ['Code', 'Status', ...EXPLANATION],
    codes.map(([code, entry]) => [`\`${code}\``, statusOf(code), ...explanation(entry)]),
  );
}

/** The meaning repeats the code in words, so the table leaves it out. */
function walletTable(codes: Codes): string {
  return table(
    ['Code', 'Status', 'Endpoint', ...EXPLANATION.slice(1)],
    codes.map(([code, entry]) => [`\`${code}\``, statusOf(code), entry.where ?? '', ...explanation(entry).slice(1)]),
  );
}

const statusOf = (code: string) => String(STATUSES[code]?.status ?? INTERNAL_ERROR_STATUS);

function sessionTable(codes: Codes): string {
  return table(
    ['Code', 'Flow', ...EXPLANATION],
    codes.map(([code, entry]) => [`\`${code}\``, entry.where ?? '', ...explanation(entry)]),
  );
}

function plainTable(codes: Codes): string {
  return table(
    ['Code', ...EXPLANATION],
    codes.map(([code, entry]) => [`\`${code}\``, ...explanation(entry)]),
  );
}

const EXPLANATION = ['Meaning', 'Cause', 'Fix'];

function explanation({ meaning, cause, fix, page }: ErrorExplanation): readonly string[] {
  return [meaning, cause, page === undefined ? fix : `${fix} [More](${page})`];
}

function wireNames(): string {
  const surfaces = ['oauth', 'vci', 'vp'] as const;
  const rows = Object.entries(STATUSES).flatMap(([code, names]) => {
    const errors = surfaces.map((surface) => names[surface] ?? names.wallet ?? code);
    return errors.every((error) => error === code) ? [] : [[`\`${code}\``, ...errors.map((error) => `\`${error}\``)]];
  });
  return table(['Code', 'OAuth', 'Credential endpoints', 'Presentation endpoints'], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
