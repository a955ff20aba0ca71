import { type Baseline, baselineOf } from './baseline.ts';
import type { DatabaseRun } from './database-run.ts';
import { SCENARIOS } from './scenarios.ts';

type Row = {
  readonly title: string;
  readonly costMs: number;
  readonly goalMs: number;
  readonly practicalMs: number;
};

const WIDTH = 760;
const LABELS = 250;
const RIGHT = 30;
const TOP = 62;
const ROW = 40;
/** Colours of both schemes; the chart stands in a page as an image, so it has to know the scheme itself. */
const STYLE = `
    text { font: 12px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 11px; fill: #59636e }
    .cost { fill: #0969da } .goal { stroke: #1a7f37; stroke-width: 2 } .best { stroke: #9a6700; stroke-width: 2 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .small { fill: #9198a1 }
      .cost { fill: #4493f8 } .goal { stroke: #3fb950 } .best { stroke: #d29922 }
    }`;

/** A bar for each flow that has a goal, as a multiple of its goal: flows differ a hundredfold in milliseconds. */
export function chartOf(run: DatabaseRun): string {
  const baseline = baselineOf([run]);
  const rows = rowsOf(baseline);
  const most = Math.max(1, ...rows.map(({ costMs, goalMs }) => costMs / goalMs));
  const perGoal = (WIDTH - LABELS - RIGHT) / most;
  const height = TOP + rows.length * ROW + 10;
  const title = `CPU of service and database per flow, ${escapeXml(run.server)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">
  <style>${STYLE}
  </style>
  <text x="0" y="16">${title}</text>
  <text x="0" y="34" class="small">milliseconds, as on a machine that signs with P-256 in 49 µs and verifies in 91 µs</text>
${legend()}
${rows.map((row, index) => bar(row, TOP + index * ROW, perGoal)).join('\n')}
</svg>
`;
}

function rowsOf({ databases: [database] }: Baseline): readonly Row[] {
  return SCENARIOS.flatMap(({ name, title, goalMs, practicalMs }) => {
    const flow = database?.flows.find(({ scenario }) => scenario === name);
    if (flow === undefined || goalMs === undefined || practicalMs === undefined) return [];
    return [{ title: title.replace(/ \(.*/, ''), costMs: flow.costMs, goalMs, practicalMs }];
  });
}

function legend(): string {
  const x = WIDTH - 250;
  return `  <rect x="${x}" y="8" width="12" height="9" class="cost"/><text x="${x + 18}" y="16" class="small">now</text>
  <path d="M${x + 76} 6v13" class="goal"/><text x="${x + 82}" y="16" class="small">goal</text>
  <path d="M${x + 136} 6v13" class="best"/><text x="${x + 142}" y="16" class="small">at best on Node</text>`;
}

function bar({ title, costMs, goalMs, practicalMs }: Row, y: number, perGoal: number): string {
  const at = (ms: number) => (LABELS + (ms / goalMs) * perGoal).toFixed(1);
  const values = `${costMs.toPrecision(2)} ms, goal ${goalMs}, at best ${practicalMs}`;
  return `  <text x="0" y="${y + 12}">${escapeXml(title)}</text><text x="0" y="${y + 27}" class="small">${values}</text>
  <rect x="${LABELS}" y="${y + 4}" width="${((costMs / goalMs) * perGoal).toFixed(1)}" height="18" class="cost"/>
  <path d="M${at(goalMs)} ${y}v26" class="goal"/><path d="M${at(practicalMs)} ${y}v26" class="best"/>`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
