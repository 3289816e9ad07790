/** Path of a model of generateContent upstreams, whose name may begin with the collection that it is in. */
export function modelPath(model: string): string {
  const path = model.split('/').map(encodeURIComponent).join('/');
  return isInCollection(model) ? `/${path}` : `/models/${path}`;
}

/** The name of a model with the collection that it is in, as bodies have it. */
export function resourceName(model: string): string {
  return isInCollection(model) ? model : `models/${model}`;
}

function isInCollection(model: string): boolean {
  return model.startsWith('models/') || model.startsWith('tunedModels/');
}
