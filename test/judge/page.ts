import { findExpected } from './expected.ts';
import { FORMATS, PROFILES, RESULTS, type Result, type Row, type Tool } from './verdict.ts';

export const PAGE = 'docs/reference/interoperability.md';
const BEGIN = '<!-- verdicts: written by `npm run judge -- --write` -->';
const END = '<!-- /verdicts -->';

/** The tools and the date of the run. */
export type Judgement = { readonly date: string; readonly tools: readonly Tool[]; readonly rows: readonly Row[] };

/** The page with its tables made anew. */
export function withVerdicts(page: string, judgement: Judgement): string {
  const [pageStart = '', pageRest = ''] = page.split(BEGIN);
  const [, pageEnd = ''] = pageRest.split(END);
  return `${pageStart}${BEGIN}\n\n${renderTables(judgement)}\n\n${END}${pageEnd}`;
}

function renderTables({ date, tools, rows }: Judgement): string {
  const count = (result: Result) => rows.filter((row) => row.result === result).length;
  const summary = (Object.keys(RESULTS) as Result[]).map((result) => `${count(result)} ${RESULTS[result]}`);
  const reasons = [...new Set(rows.filter(({ result }) => result === 'fails').map(describeReason))];
  return [
    `Judged on ${date}: ${summary.join(', ')}.`,
    ['| Tool | Version | What it is |', '|---|---|---|', ...tools.map(toolLine)].join('\n'),
    ...tools.map(({ name }) => renderTable(name, rows, reasons)).filter((table) => table !== ''),
    ...(reasons.length === 0 ? [] : [`### Reasons of failures\n\n${reasons.map((reason, index) => `${index + 1}. ${reason}`).join('\n')}`]),
  ].join('\n\n');
}

const toolLine = ({ name, version, about }: Tool) => `| ${name} | ${version} | ${about} |`;

function describeReason(row: Row): string {
  const expectedFailure = findExpected(row);
  if (expectedFailure === undefined) return `**Not explained**: ${row.detail ?? 'no reason given'}`;
  return `${expectedFailure.tool}: ${expectedFailure.reason}. Test: \`${expectedFailure.test}\``;
}

/** Flows downwards; profiles and formats across. */
function renderTable(tool: string, toolRows: readonly Row[], reasons: readonly string[]): string {
  const rows = toolRows.filter((row) => row.tool === tool);
  const rowsWithoutProfile = rows.filter(({ profile }) => profile === undefined);
  const columns = PROFILES.flatMap((profile) => FORMATS.map((format) => ({ profile, format })));
  const cell = (row: Row | undefined): string => {
    if (row === undefined) return '';
    if (row.result === 'fails') return `${RESULTS.fails} (${reasons.indexOf(describeReason(row)) + 1})`;
    if (row.result === 'works' && row.detail !== undefined) return `${RESULTS.works} \\*`;
    return row.detail === undefined ? RESULTS[row.result] : `${RESULTS[row.result]}: ${row.detail}`;
  };
  const lines = rowsWithoutProfile.map((row) => `| ${row.flow} | ${cell(row)} |`);
  const flat = lines.length === 0 ? [] : [['| | |', '|---|---|', ...lines].join('\n')];
  const flows = [...new Set(rows.filter(({ profile }) => profile !== undefined).map(({ flow }) => flow))];
  const wide = flows.map((flow) => {
    const matchingRows = columns.map(({ profile, format }) =>
      rows.find((row) => row.flow === flow && row.profile === profile && row.format === format),
    );
    return `| ${flow} | ${matchingRows.map((row) => short(row, cell)).join(' | ')} |`;
  });
  const head = `| Flow | ${columns.map(({ profile, format }) => `${profile}, ${format}`).join(' | ')} |`;
  const table = wide.length === 0 ? [] : [[head, `|---|${columns.map(() => '---|').join('')}`, ...wide].join('\n')];
  const notes = renderNotes(rows);
  return rows.length === 0 ? '' : [`### ${tool}`, ...flat, ...table, ...notes].join('\n\n');
}

/** Equal notes below the table are merged. */
function short(row: Row | undefined, cell: (row: Row | undefined) => string): string {
  if (row === undefined || row.result === 'fails' || row.result === 'works') return cell(row);
  return RESULTS[row.result];
}

function renderNotes(rows: readonly Row[]): readonly string[] {
  const notes = rows
    .filter(({ result, profile }) => profile !== undefined && (result === 'lacking' || result === 'forbidden'))
    .map(({ result, flow, detail }) => `- ${RESULTS[result]}: ${flow}: ${detail}`);
  for (const { result, detail } of rows) if (result === 'works' && detail !== undefined) notes.push(`- \\*: ${detail}`);
  return notes.length === 0 ? [] : [[...new Set(notes)].join('\n')];
}
