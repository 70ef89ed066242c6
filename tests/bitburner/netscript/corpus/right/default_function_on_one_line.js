// The game: works
export default function() { return 1; } export const two = 2;
