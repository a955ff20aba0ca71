import type { IModule } from 'dependency-cruiser';

/** Folders whose subfolders are parts of their own. */
const DEEPER = ['adapters/http', 'adapters/persistence'];

/** Imports between the folders of the layers, those of types included: each folder with those that it imports from. */
export type FolderGraph = ReadonlyMap<string, ReadonlySet<string>>;

/** The folder that a file counts to; undefined for files that lie directly in a layer. */
function folderOf(file: string): string | undefined {
  const parts = file.split('/').slice(0, -1);
  const parent = parts.slice(0, 2).join('/');
  const depth = DEEPER.includes(parent) ? 3 : 2;
  return parts.length < depth ? undefined : parts.slice(0, depth).join('/');
}

export function folderGraph(modules: readonly Pick<IModule, 'source' | 'dependencies'>[]): FolderGraph {
  const graph = new Map<string, Set<string>>();
  for (const { source, dependencies } of modules) {
    const from = folderOf(source);
    if (from === undefined) continue;
    for (const { resolved } of dependencies) {
      const to = folderOf(resolved);
      if (to === undefined || to === from || resolved.includes('node_modules/')) continue;
      graph.set(from, (graph.get(from) ?? new Set()).add(to));
    }
  }
  return graph;
}

/** Folders that depend on each other in a circle, one list for each circle. */
export function folderCycles(graph: FolderGraph): readonly (readonly string[])[] {
  const reachable = (start: string) => {
    const seen = new Set<string>();
    const open = [...(graph.get(start) ?? [])];
    for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
      if (seen.has(folder)) continue;
      seen.add(folder);
      open.push(...(graph.get(folder) ?? []));
    }
    return seen;
  };
  const reached = new Map([...graph.keys()].map((folder) => [folder, reachable(folder)]));
  const cycles = new Map<string, readonly string[]>();
  for (const [folder, others] of reached) {
    if (!others.has(folder)) continue;
    const cycle = [...others].filter((other) => reached.get(other)?.has(folder)).sort();
    cycles.set(cycle.join(' '), cycle);
  }
  return [...cycles.values()];
}

/** The folders of a layer, those that import nothing first, each with what it imports from in the same layer. */
export function describeLayer(graph: FolderGraph, layer: string): string {
  const isInside = (folder: string) => folder.startsWith(`${layer}/`);
  const names = new Set([...graph].flatMap(([from, to]) => [from, ...to]).filter(isInside));
  const targets = (folder: string) => [...(graph.get(folder) ?? [])].filter(isInside).sort();
  return [...names]
    .sort((one, other) => targets(one).length - targets(other).length || one.localeCompare(other))
    .map((folder) => `  ${folder} -> ${targets(folder).join(', ') || 'nothing'}`)
    .join('\n');
}
