import { expectedOf } from './expected.ts';
import { FORMATS, PROFILES, RESULTS, type Result, type Row, type Tool } from './verdict.ts';

export const PAGE = 'docs/reference/interoperability.md';
const BEGIN = '<!-- verdicts: written by `npm run judge -- --write` -->';
const END = '<!-- /verdicts -->';

/** What was run and when. */
export type Judgement = { readonly date: string; readonly tools: readonly Tool[]; readonly rows: readonly Row[] };

/** The page with its tables made anew. */
export function withVerdicts(page: string, judgement: Judgement): string {
  const [before = '', rest = ''] = page.split(BEGIN);
  const [, after = ''] = rest.split(END);
  return `${before}${BEGIN}\n\n${tablesOf(judgement)}\n\n${END}${after}`;
}

function tablesOf({ date, tools, rows }: Judgement): string {
  const count = (result: Result) => rows.filter((row) => row.result === result).length;
  const summary = (Object.keys(RESULTS) as Result[]).map((result) => `${count(result)} ${RESULTS[result]}`);
  const reasons = [...new Set(rows.filter(({ result }) => result === 'fails').map(reasonFor))];
  return [
    `Judged on ${date}: ${summary.join(', ')}.`,
    ['| Tool | Version | What it is |', '|---|---|---|', ...tools.map(toolLine)].join('\n'),
    ...tools.map(({ name }) => tableOf(name, rows, reasons)).filter((table) => table !== ''),
    ...(reasons.length === 0 ? [] : [`### Reasons of failures\n\n${reasons.map((one, at) => `${at + 1}. ${one}`).join('\n')}`]),
  ].join('\n\n');
}

const toolLine = ({ name, version, about }: Tool) => `| ${name} | ${version} | ${about} |`;

function reasonFor(row: Row): string {
  const known = expectedOf(row);
  if (known === undefined) return `**Not explained**: ${row.detail ?? 'no reason given'}`;
  return `${known.tool}: ${known.reason}. Test: \`${known.test}\``;
}

/** Flows downwards; profiles and formats across. */
function tableOf(tool: string, all: readonly Row[], reasons: readonly string[]): string {
  const rows = all.filter((row) => row.tool === tool);
  const plain = rows.filter(({ profile }) => profile === undefined);
  const columns = PROFILES.flatMap((profile) => FORMATS.map((format) => ({ profile, format })));
  const cell = (row: Row | undefined): string => {
    if (row === undefined) return '';
    if (row.result === 'fails') return `${RESULTS.fails} (${reasons.indexOf(reasonFor(row)) + 1})`;
    if (row.result === 'works' && row.detail !== undefined) return `${RESULTS.works} \\*`;
    return row.detail === undefined ? RESULTS[row.result] : `${RESULTS[row.result]}: ${row.detail}`;
  };
  const lines = plain.map((row) => `| ${row.flow} | ${cell(row)} |`);
  const flat = lines.length === 0 ? [] : [['| | |', '|---|---|', ...lines].join('\n')];
  const flows = [...new Set(rows.filter(({ profile }) => profile !== undefined).map(({ flow }) => flow))];
  const wide = flows.map((flow) => {
    const found = columns.map(({ profile, format }) =>
      rows.find((row) => row.flow === flow && row.profile === profile && row.format === format),
    );
    return `| ${flow} | ${found.map((row) => short(row, cell)).join(' | ')} |`;
  });
  const head = `| Flow | ${columns.map(({ profile, format }) => `${profile}, ${format}`).join(' | ')} |`;
  const table = wide.length === 0 ? [] : [[head, `|---|${columns.map(() => '---|').join('')}`, ...wide].join('\n')];
  const notes = notesOf(rows);
  return rows.length === 0 ? '' : [`### ${tool}`, ...flat, ...table, ...notes].join('\n\n');
}

/** What stands below the table stands once. */
function short(row: Row | undefined, cell: (row: Row | undefined) => string): string {
  if (row === undefined || row.result === 'fails' || row.result === 'works') return cell(row);
  return RESULTS[row.result];
}

function notesOf(rows: readonly Row[]): readonly string[] {
  const notes = rows
    .filter(({ result, profile }) => profile !== undefined && (result === 'lacking' || result === 'forbidden'))
    .map(({ result, flow, detail }) => `- ${RESULTS[result]}: ${flow}: ${detail}`);
  for (const { result, detail } of rows) if (result === 'works' && detail !== undefined) notes.push(`- \\*: ${detail}`);
  return notes.length === 0 ? [] : [[...new Set(notes)].join('\n')];
}
