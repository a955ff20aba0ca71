/** @returns true when `dist` was built from the present sources. */
export function isBuilt(): boolean;
