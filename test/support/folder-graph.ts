import type { IModule } from 'dependency-cruiser';

/** Folders whose subfolders count as separate folders. */
const NESTED = ['adapters/http', 'adapters/persistence'];

/** Imports between the folders of the layers, type imports included: each folder with its imported folders. */
export type FolderGraph = ReadonlyMap<string, ReadonlySet<string>>;

/** The folder of a file; undefined for files that lie directly in a layer. */
function folderOf(file: string): string | undefined {
  const parts = file.split('/').slice(0, -1);
  const parent = parts.slice(0, 2).join('/');
  const depth = NESTED.includes(parent) ? 3 : 2;
  return parts.length < depth ? undefined : parts.slice(0, depth).join('/');
}

export function folderGraph(modules: readonly Pick<IModule, 'source' | 'dependencies'>[]): FolderGraph {
  const graph = new Map<string, Set<string>>();
  for (const { source, dependencies } of modules) {
    const importer = folderOf(source);
    if (importer === undefined) continue;
    for (const { resolved } of dependencies) {
      const imported = folderOf(resolved);
      if (imported === undefined || imported === importer || resolved.includes('node_modules/')) continue;
      graph.set(importer, (graph.get(importer) ?? new Set()).add(imported));
    }
  }
  return graph;
}

/** Folders that depend on each other in a circle, one list for each circle. */
export function folderCycles(graph: FolderGraph): readonly (readonly string[])[] {
  const reachable = (start: string) => {
    const visited = new Set<string>();
    const queue = [...(graph.get(start) ?? [])];
    for (let folder = queue.pop(); folder !== undefined; folder = queue.pop()) {
      if (visited.has(folder)) continue;
      visited.add(folder);
      queue.push(...(graph.get(folder) ?? []));
    }
    return visited;
  };
  const reached = new Map([...graph.keys()].map((folder) => [folder, reachable(folder)]));
  const cycles = new Map<string, readonly string[]>();
  for (const [folder, reachableFolders] of reached) {
    if (!reachableFolders.has(folder)) continue;
    const cycle = [...reachableFolders].filter((other) => reached.get(other)?.has(folder)).sort();
    cycles.set(cycle.join(' '), cycle);
  }
  return [...cycles.values()];
}

/** The folders of a layer, sorted by the number of their imports within it, each with its imports. */
export function describeLayer(graph: FolderGraph, layer: string): string {
  const isInside = (folder: string) => folder.startsWith(`${layer}/`);
  const names = new Set([...graph].flatMap(([importer, imported]) => [importer, ...imported]).filter(isInside));
  const targets = (folder: string) => [...(graph.get(folder) ?? [])].filter(isInside).sort();
  return [...names]
    .sort((one, other) => targets(one).length - targets(other).length || one.localeCompare(other))
    .map((folder) => `  ${folder} -> ${targets(folder).join(', ') || 'nothing'}`)
    .join('\n');
}
